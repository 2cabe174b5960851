"""MiniCheck-RoBERTa: sequence classification over document, end-of-text token and claim as one string."""

from dataclasses import dataclass

from verifier.scorers.grounding import GroundingScorer


@dataclass(eq=False, repr=False)
class MiniCheckRobertaScorer(GroundingScorer):
    """Support is the softmax of the second of two labels; see ``GroundingScorer`` for the arguments."""

    packing: str = "minicheck"
    max_length: int | None = 512

    def prompt(self, document: str, claim: str) -> str:
        """One string."""
        return f"{document}{self._eos()}{claim}"
