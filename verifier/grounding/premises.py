"""How a claim's evidence becomes a premise for a scorer of support."""

from verifier.records import Claim


def joined_premise(claim: Claim, joint: str = "\n") -> str:
    """The texts of all the claim's evidence, in order, with ``joint`` between them; empty without evidence."""
    return joint.join(item.text for item in claim.evidence)
