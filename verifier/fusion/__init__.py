"""Fusion of cosine and lexical coverage with a numeric gate (shared/seeds/fusion-matcher.txt)."""

from verifier.fusion.lexical import (
    PlanIdf,
    fuse,
    lexical_coverage,
    numeric_atoms,
    numeric_gate_trips,
    pair_score,
    tokenize,
)

__all__ = ["PlanIdf", "fuse", "lexical_coverage", "numeric_atoms", "numeric_gate_trips", "pair_score", "tokenize"]
