"""Choosing thresholds: every candidate's counts, and the best one under a stated rule."""
