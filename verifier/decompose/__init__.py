"""Drafts to atomic claims: an LLM with constrained JSON, or sentences without any model."""

from verifier.decompose.answer import DecomposeError, parse_claims
from verifier.decompose.decomposition import Decomposer, Decomposition
from verifier.decompose.llm import LlmDecomposer
from verifier.decompose.sentences import SentenceDecomposer, claims_of_sentences

__all__ = [
    "DecomposeError",
    "Decomposer",
    "Decomposition",
    "LlmDecomposer",
    "SentenceDecomposer",
    "claims_of_sentences",
    "parse_claims",
]
