"""What turns texts into vectors."""

from verifier.embedders.transformer import TransformerEmbedder, minilm_directory, weights_sha256

__all__ = ["TransformerEmbedder", "minilm_directory", "weights_sha256"]
