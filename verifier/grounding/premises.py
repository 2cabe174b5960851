"""How a claim's evidence becomes a premise for a scorer of support."""

from verifier.records import Claim


def joined_premise(claim: Claim) -> str:
    """The texts of all the claim's evidence, in order, one a line; empty without evidence."""
    return "\n".join(item.text for item in claim.evidence)
