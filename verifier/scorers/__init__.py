"""Scorers: what turns (premise, hypothesis) pairs into probabilities, one file a family."""

from verifier.scorers.ensemble import EnsembleScorer
from verifier.scorers.judgment import parse_judgment
from verifier.scorers.recorded import RecordedScorer
from verifier.scorers.recorded_support import RecordedSupportScorer

__all__ = ["EnsembleScorer", "RecordedScorer", "RecordedSupportScorer", "parse_judgment"]
