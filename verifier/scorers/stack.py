"""The stack: another scorer's support through a calibrator that jobs.calibrate fitted, text features beside it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from verifier.calibration.anchors import anchor_features
from verifier.calibration.calibrators import Calibrator, apply, needs_texts, read_calibrator
from verifier.digests import sha256_file, sha256_json
from verifier.errors import ConfigurationError
from verifier.protocol import Part, Scores
from verifier.scorers.base import identify, raise_first, support_scores
from verifier.validation import refuse_unknown_arguments

_BASE = "base"


class StackScorer:
    """Support as the probability that a fitted calibrator gives to the base scorer's.

    A calibrator of the kind ``stack`` also reads how the claim aligns with the premise, its numeric and capitalized
    anchors and its negation (``verifier.calibration.anchors``); ``isotonic`` and ``logistic`` read the support alone.

    Args:
        base: a grounding or three-label scorer, or a factory of one (``functools.partial``).
        path: the ``calibrator.json`` that jobs.calibrate wrote for this base.

    Attributes:
        model: such as ``stack(a)``, by the calibrator's kind.
        revision: hexadecimal sha256 over the base's model and revision and the file's sha256.
        dtype: the base's.

    Raises:
        ConfigurationError: the file holds no calibrator, or one that was fitted on another base.
    """

    def __init__(self, base: Any, path: str) -> None:
        self.calibrator = read_calibrator(path)
        self.base = base() if isinstance(base, partial) else base
        identity = _identity({"model": self.base.model, "revision": self.base.revision}, path, self.calibrator)
        self.model, self.revision = identity["model"], identity["revision"]
        self.dtype = str(getattr(self.base, "dtype", "unknown"))

    @classmethod
    def identify(cls, base: partial[Any], path: str) -> dict[str, str]:
        """Model, revision and the sha256 of the calibrator, and the base's identity as ``base.<field>``; loads neither.

        Raises ConfigurationError where the stack could not be built.
        """
        calibrator = read_calibrator(path)
        refuse_unknown_arguments(base, "scorer.base")
        found = identify(base)
        return _identity(found, path, calibrator) | {f"{_BASE}.{field}": value for field, value in found.items()}

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The support of each pair, in [0, 1]; VerificationError where one has none."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``; the one part of a pair is the base's support, under the member ``base``."""
        asked = list(pairs)
        answer = support_scores(self.base, asked)
        scored = [index for index in range(len(asked)) if index not in answer.errors]
        inputs = answer.values[scored, None]
        if needs_texts(self.calibrator["kind"]):
            inputs = np.hstack([inputs, anchor_features([asked[index] for index in scored])])
        values = np.full(len(asked), np.nan)
        values[scored] = apply(self.calibrator, inputs)
        parts = {
            index: (Part(_BASE, int(answer.window[index]), int(answer.windows[index]), float(answer.values[index])),)
            for index in scored
        }
        return replace(answer, values=values, parts=parts)


def _identity(base: dict[str, str], path: str, calibrator: Calibrator) -> dict[str, str]:
    fitted_on = calibrator.get("base") or {}
    if fitted_on.get("revision") not in (None, "unknown", base["revision"]):
        raise ConfigurationError(
            f"{path} was fitted on scores of {fitted_on['model']} at {fitted_on['revision']}, and scorer.base is"
            f" {base['model']} at {base['revision']}: give the base that it was fitted on"
        )
    digest = sha256_file(Path(path))
    return {
        "model": f"{calibrator['kind']}({base['model']})",
        "revision": sha256_json([base["model"], base["revision"], digest]),
        "sha256": digest,
    }
