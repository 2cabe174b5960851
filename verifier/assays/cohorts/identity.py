"""What makes two claims of different files the same claim: its text and that of its evidence."""

from collections.abc import Iterable

from verifier.digests import sha256_json
from verifier.records import Claim


def identity_of(claim: Claim) -> str:
    """sha256 of claim and evidence texts, runs of white space as one; ids, labels and file formats do not count."""
    return identity_of_texts(claim.claim, [item.text for item in claim.evidence])


def identity_of_texts(claim: str, evidence: Iterable[str]) -> str:
    """The identity of a claim with this text and these evidence texts."""
    return sha256_json([_plain(claim), [_plain(text) for text in evidence]])


def _plain(text: str) -> str:
    return " ".join(text.split())
