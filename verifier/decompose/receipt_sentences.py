"""The claims of a receipt: sentences as shared/seeds/factuality-receipts.txt finds them, with their draft spans."""

from collections.abc import Sequence

from verifier.decompose.decomposition import Decomposition
from verifier.factuality.corroboration import sentence_claims
from verifier.fusion.records import Draft, DraftClaim


class ReceiptSentences:
    """Every sentence of at least two words is a claim, see ``sentence_claims``. It needs no model."""

    model = "receipt-sentences"
    revision = "1"
    prompt_hash = ""

    @classmethod
    def identify(cls) -> dict[str, str]:
        """Its name and version."""
        return {"model": cls.model, "revision": cls.revision}

    def decompose(self, drafts: Sequence[Draft]) -> list[Decomposition]:
        """One decomposition a draft, in order; never unavailable."""
        return [Decomposition(_claims(draft.text)) for draft in drafts]


def _claims(draft: str) -> tuple[DraftClaim, ...]:
    """The sentences where they stand: each is a quotation, and they come in the draft's order."""
    claims, position = list[DraftClaim](), 0
    for sentence in sentence_claims(draft):
        start = draft.index(sentence, position)
        position = start + len(sentence)
        claims.append(DraftClaim(sentence, (start, position)))
    return tuple(claims)
