"""MiniCheck-DeBERTa-v3: what MiniCheck-RoBERTa does, over longer inputs."""

from dataclasses import dataclass

from verifier.scorers.minicheck_roberta import MiniCheckRobertaScorer


@dataclass(eq=False, repr=False)
class MiniCheckDebertaScorer(MiniCheckRobertaScorer):
    """Support is the softmax of the second of two labels; see ``GroundingScorer`` for the arguments."""

    max_length: int | None = 2048
