"""Scorers: what turns (premise, hypothesis) pairs into probabilities, one file a family."""

from verifier.scorers.recorded import RecordedScorer

__all__ = ["RecordedScorer"]
