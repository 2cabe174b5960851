"""What turns texts into vectors."""

from verifier.embedders.transformer import TransformerEmbedder, minilm_directory

__all__ = ["TransformerEmbedder", "minilm_directory"]
