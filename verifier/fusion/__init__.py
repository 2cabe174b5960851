"""Fusion of cosine and lexical coverage with a numeric gate (shared/seeds/fusion-matcher.txt)."""

from verifier.fusion.config import Formula, FusionConfig
from verifier.fusion.lexical import (
    PlanIdf,
    fuse,
    lexical_coverage,
    numeric_atoms,
    numeric_gate_trips,
    pair_score,
    tokenize,
)
from verifier.fusion.matcher import match_drafts
from verifier.fusion.records import (
    Candidate,
    ClaimVerdict,
    Draft,
    DraftClaim,
    DraftVerdict,
    PlanSpan,
    SpanRef,
    check_draft,
)
from verifier.fusion.redaction import delivered_text, redact
from verifier.fusion.verdicts import Verdict, band

__all__ = [
    "Candidate",
    "ClaimVerdict",
    "Draft",
    "DraftClaim",
    "DraftVerdict",
    "Formula",
    "FusionConfig",
    "PlanIdf",
    "PlanSpan",
    "SpanRef",
    "Verdict",
    "band",
    "check_draft",
    "delivered_text",
    "fuse",
    "lexical_coverage",
    "match_drafts",
    "numeric_atoms",
    "numeric_gate_trips",
    "pair_score",
    "redact",
    "tokenize",
]
