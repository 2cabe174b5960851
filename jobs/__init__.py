"""Thin entry points: a Hydra job each, and ``gpu_check``, which needs no Hydra."""
