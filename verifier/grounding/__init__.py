"""Grounding: claims decided from a scorer's support probability."""
