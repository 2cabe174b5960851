"""Calibrators: maps from a support score, and for the stack from text features too, to a probability.

A calibrator is plain JSON: ``kind`` and numbers. Applying one needs no library but numpy.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from verifier.calibration.anchors import FEATURES
from verifier.calibration.selection import Bools, Floats
from verifier.errors import ConfigurationError

Kind = Literal["none", "isotonic", "logistic", "stack"]
Calibrator = Mapping[str, Any]

SUPPORT = "support_logit"
_CLIP = 1e-6  # scores are kept this far from 0 and 1 before the logit
_LISTS = {"isotonic": ("x", "y"), "logistic": ("mean", "scale", "weights"), "stack": ("mean", "scale", "weights")}


def needs_texts(kind: str) -> bool:
    """Whether this kind reads claims and evidence beside the score."""
    return kind == "stack"


def fit(kind: Kind, inputs: Floats, positive: Bools) -> Calibrator:
    """Fit a calibrator.

    ``none`` leaves the score as it is. ``isotonic`` is the best non-decreasing map (pool adjacent violators).
    ``logistic`` is Platt's map, a logistic regression on the logit of the score. ``stack`` is a logistic regression
    on that logit and ``verifier.calibration.anchors``. Both standardize and penalize weights with C = 1.

    Args:
        kind: which.
        inputs: shape (n, 1 + features): the score in [0, 1] and, for the stack, its features.
        positive: labels, shape (n,), both kinds among them.
    """
    if kind == "none":
        return {"kind": kind}
    if kind == "isotonic":
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(inputs[:, 0], positive)
        return {"kind": kind, "x": curve.X_thresholds_.tolist(), "y": curve.y_thresholds_.tolist()}
    columns = _columns(kind, inputs)
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    scale[scale == 0] = 1.0
    model = LogisticRegression(max_iter=1000).fit((columns - mean) / scale, positive)
    return {
        "kind": kind,
        "features": [SUPPORT, *(FEATURES if kind == "stack" else ())],
        "mean": mean.tolist(),
        "scale": scale.tolist(),
        "weights": model.coef_[0].tolist(),
        "intercept": float(model.intercept_[0]),
    }


def apply(calibrator: Calibrator, inputs: Floats) -> Floats:
    """The probabilities of ``inputs`` (see ``fit``), shape (n,); each depends on its own row alone."""
    kind = calibrator["kind"]
    if kind == "none":
        return inputs[:, 0]
    if kind == "isotonic":
        return np.interp(inputs[:, 0], calibrator["x"], calibrator["y"])
    standard = (_columns(kind, inputs) - np.array(calibrator["mean"])) / np.array(calibrator["scale"])
    # A sum along rows, not a matrix product: the same bits whatever the row is scored with.
    strength = (standard * np.array(calibrator["weights"])).sum(axis=1) + calibrator["intercept"]
    probabilities: Floats = 1 / (1 + np.exp(-np.clip(strength, -700, 700)))
    return probabilities


def read_calibrator(path: str | Path) -> Calibrator:
    """The calibrator in a JSON file, such as jobs.calibrate writes; ConfigurationError where it holds none."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        kind = found["kind"]
        sizes = {len(np.array(found[name], dtype=np.float64)) for name in _LISTS[kind]}
        if kind != "isotonic":
            expected = [SUPPORT, *(FEATURES if kind == "stack" else ())]
            if found["features"] != expected:
                raise ValueError(f"its features are {found['features']} and this version's {expected}")
            sizes.add(len(expected))
            float(found["intercept"])
        if len(sizes) != 1:
            raise ValueError("its lists are not of one length")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(
            f"{path} holds no calibrator: name the calibrator.json that jobs.calibrate wrote ({reason})"
        ) from error
    return found  # type: ignore[no-any-return]


def _columns(kind: str, inputs: Floats) -> Floats:
    support = np.clip(inputs[:, :1], _CLIP, 1 - _CLIP)
    logit = np.log(support / (1 - support))
    return np.hstack([logit, inputs[:, 1:]]) if kind == "stack" else logit
