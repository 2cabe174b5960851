"""FactCG: sequence classification over a question about the document, as one string."""

import re
from dataclasses import dataclass
from typing import Any

from verifier.errors import ConfigurationError
from verifier.scorers.grounding import GroundingScorer

TEMPLATE = (
    '{document}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)
_FIELD = re.compile(r"\{(document|claim)\}")


@dataclass(eq=False, repr=False)
class FactCGScorer(GroundingScorer):
    """Support is the softmax of the second of two labels.

    Args:
        template: the prompt, with ``{document}`` and ``{claim}`` once each; other braces stand for themselves.

    The other arguments are those of ``GroundingScorer``.
    """

    packing: str = "factcg"
    max_length: int | None = 2048
    template: str = TEMPLATE

    def prompt(self, document: str, claim: str) -> str:
        """One string."""
        # One pass over the template: what looks like a field inside a document stays.
        texts = {"document": document, "claim": claim}
        return _FIELD.sub(lambda match: texts[match[1]], self.template)

    def _check(self, config: Any) -> None:
        super()._check(config)
        if sorted(_FIELD.findall(self.template)) != ["claim", "document"]:
            raise ConfigurationError("template must hold {document} and {claim} once each")
