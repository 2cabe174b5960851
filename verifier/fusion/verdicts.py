"""The four verdicts, and the band that a score falls into."""

from enum import StrEnum

SUPPORTED_FROM = 0.75
PARTIAL_FROM = 0.50


class Verdict(StrEnum):
    """What the evidence does for a claim of a draft.

    ``EVIDENCE_REDACTED`` stands where the best span lost a part of its text to an erasure: its score says nothing.
    """

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    EVIDENCE_REDACTED = "evidence_redacted"


def band(score: float, supported: float = SUPPORTED_FROM, partial: float = PARTIAL_FROM) -> Verdict:
    """The band of a fused score in [0, 1]; a band holds its lower end.

    >>> [str(band(score)) for score in (1.0, 0.75, 0.72, 0.5, 0.2)]
    ['supported', 'supported', 'partial', 'partial', 'unsupported']
    """
    if score >= supported:
        return Verdict.SUPPORTED
    return Verdict.PARTIAL if score >= partial else Verdict.UNSUPPORTED
