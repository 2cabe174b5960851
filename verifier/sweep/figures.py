"""The figures of a setting: how many claims became what, and how well that agrees with the labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import auc

from verifier.calibration.selection import figures as binary_figures
from verifier.records import Claim, Status
from verifier.sweep.decisions import CODE, OUTCOMES, REJECTED, UNSCORED, Bools, Decisions, Floats, Ints
from verifier.sweep.settings import Setting

FIGURES = ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "false_support_rate")
RANKING = ("auroc", "average_precision")
COUNTS = tuple(f"n_{outcome}" for outcome in OUTCOMES)


@dataclass(frozen=True)
class Labels:
    """The labels of n claims: ``names``, each claim's position in them (-1: none) and whether it is ``supported``."""

    names: Sequence[str]
    codes: Ints
    positive: Bools

    @classmethod
    def of(cls, claims: Sequence[Claim]) -> "Labels":
        """Of claims."""
        names = sorted({claim.label for claim in claims if claim.label is not None})
        place = {name: code for code, name in enumerate(names)}
        codes = np.array([-1 if claim.label is None else place[claim.label] for claim in claims], np.int64)
        return cls(names, codes, codes == place.get(Status.SUPPORTED.value, -2))

    @property
    def known(self) -> Bools:
        """Claims that have a label."""
        return self.codes >= 0


@dataclass(frozen=True)
class Ranking:
    """How well scores rank claims that are labelled supported above the others, at each distinct score from the top.

    Attributes:
        true_positives, false_positives: claims of either kind with at least this score.
    """

    true_positives: Ints
    false_positives: Ints

    @classmethod
    def of(cls, score: Floats, positive: Bools) -> "Ranking":
        """Of scores and whether each claim is labelled supported, both of shape (n,); costs one sort."""
        order = np.argsort(-score, kind="stable")
        ends = np.flatnonzero(np.r_[np.diff(score[order]) != 0, True]) if len(score) else np.zeros(0, np.int64)
        true = np.cumsum(positive[order], dtype=np.int64)[ends]
        return cls(true, ends + 1 - true)

    @property
    def auroc(self) -> float | None:
        """Area under the ROC curve, as scikit-learn's ``roc_auc_score``; None without claims of both kinds."""
        if not len(self.true_positives) or not self.true_positives[-1] or not self.false_positives[-1]:
            return None
        return float(auc(np.r_[0, self.false_positives], np.r_[0, self.true_positives])) / float(
            self.true_positives[-1] * self.false_positives[-1]
        )

    @property
    def average_precision(self) -> float | None:
        """Precision averaged over the recall gained, as scikit-learn's ``average_precision_score``; None likewise."""
        if not len(self.true_positives) or not self.true_positives[-1]:
            return None
        gained = np.diff(self.true_positives, prepend=0) / self.true_positives[-1]
        return float((gained * self.precision).sum())  # a product of vectors waits for the threads of a library

    @property
    def precision(self) -> Floats:
        """Share of the claims with at least this score that are labelled supported."""
        shares: Floats = self.true_positives / (self.true_positives + self.false_positives)
        return shares

    @property
    def recall(self) -> Floats:
        """Share of the claims labelled supported that have at least this score."""
        shares: Floats = self.true_positives / max(int(self.true_positives[-1]), 1)
        return shares

    @property
    def coverage(self) -> Floats:
        """Share of all claims that have at least this score."""
        accepted = self.true_positives + self.false_positives
        shares: Floats = accepted / accepted[-1]
        return shares


def ranking(decisions: Decisions, labels: Labels) -> Ranking:
    """The ranking of the labelled claims that a setting decided."""
    counted = labels.known & ~np.isnan(decisions.score)
    return Ranking.of(decisions.score[counted], labels.positive[counted])


def setting_row(number: int, setting: Setting, decisions: Decisions, labels: Labels) -> dict[str, Any]:
    """What ``settings_frame`` makes a row of ``settings.parquet`` of: the policy, counts, and the ranking's figures.

    ``coverage`` is the share of the labelled claims (of all, where none has a label) that are decided; ``complete``
    says that no pair was missing. AUROC and average precision rank the decided claims that have a label by
    ``Decisions.score``, those labelled supported against the rest; None where there are none.
    """
    outcome = decisions.outcome
    counts = np.bincount(outcome, minlength=len(OUTCOMES)).tolist()
    missing = int(decisions.missing.sum())
    counted = labels.known if labels.known.any() else np.ones(len(outcome), np.bool_)
    decided = counted & (outcome != UNSCORED) & (outcome != REJECTED)
    judged, supported = decided & labels.known, outcome == CODE[Status.SUPPORTED.value]
    ranked = ranking(decisions, labels)
    return {
        "setting": number,
        **setting.policy.model_dump(mode="json"),
        **setting.choices,
        "configuration_sha256": setting.policy.digest(),
        "claims": len(outcome),
        **dict(zip(COUNTS, counts, strict=True)),
        "missing_pairs": missing,
        "complete": missing == 0,
        "coverage": int(decided.sum()) / int(counted.sum()) if counted.any() else None,
        "auroc": ranked.auroc,
        "average_precision": ranked.average_precision,
        "true_positives": int((judged & supported & labels.positive).sum()),
        "false_positives": int((judged & supported & ~labels.positive).sum()),
        "positives": int((judged & labels.positive).sum()),
        "negatives": int((judged & ~labels.positive).sum()),
    }


def settings_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``setting_row`` as a table, with the binary figures of *supported* against the rest.

    They are over labelled claims that are decided, and null without such claims. Those of a setting that is not
    complete leave out the claims that lack pairs, so they do not compare with those of others.
    """
    table = pl.DataFrame(list(rows), infer_schema_length=None)
    counts = ("true_positives", "false_positives", "positives", "negatives")
    found = binary_figures(*(table[name].to_numpy() for name in counts))
    judged = pl.col("positives") + pl.col("negatives") > 0
    measured = table.with_columns(pl.Series(name, values) for name, values in found.items())
    floats = [pl.col(name).cast(pl.Float64) for name in (*RANKING, "coverage")]
    return measured.with_columns(*floats, *(pl.when(judged).then(name).alias(name) for name in FIGURES))
