"""A calibration from beginning to end: the threshold, what it is worth, and what can be guaranteed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from verifier.calibration.anchors import anchor_features
from verifier.calibration.calibrators import Calibrator, Kind, apply, fit, needs_texts
from verifier.calibration.crossfit import CrossFit, cross_fit, out_of_fold
from verifier.calibration.domains import Domain, by_domain
from verifier.calibration.guarantee import Guarantee, guaranteed_threshold, one_of_each
from verifier.calibration.inputs import Labelled
from verifier.calibration.intervals import bootstrap, exact_intervals, percentiles
from verifier.calibration.reliability import Reliability, reliability
from verifier.calibration.rules import Choice, Constraint, choose, named_rule, parse_constraints
from verifier.calibration.selection import Comparison, Floats, decided_figures, passes

Share = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class GuaranteeSpec:
    """The precision to guarantee (None: none), see ``verifier.calibration.guarantee``.

    ``unit`` document takes one random claim of each document, claim takes all and assumes that they are independent.
    """

    precision: Annotated[float, Field(gt=0, le=0.999)] | None = 0.90
    confidence: Share = 0.95
    unit: Literal["document", "claim"] = "document"


@dataclass(frozen=True)
class Spec:
    """How to calibrate; ``comparison`` None is that of the input."""

    rule: str = "max_recall"
    constraints: Mapping[str, str | float | None] = field(default_factory=dict)
    comparison: Comparison | None = None
    calibrator: Kind = "none"
    folds: Annotated[int, Field(ge=2, le=100)] = 5
    bootstrap: Annotated[int, Field(ge=100, le=100_000)] = 2000
    confidence: Share = 0.95
    bins: Annotated[int, Field(ge=2, le=100)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    guarantee: GuaranteeSpec = field(default_factory=GuaranteeSpec)


@dataclass(frozen=True)
class Measured:
    """Figures of decisions: counts and figures, exact intervals (independent claims), bootstrap ones (documents)."""

    figures: dict[str, Any]
    exact: dict[str, tuple[float, float]]
    bootstrap: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Study:
    """What ``study`` found.

    Attributes:
        scores: what the threshold was chosen on, shape (n,): scores, or out-of-fold probabilities.
        choice: the threshold, or why there is none.
        calibrator: fitted on all claims.
        in_sample: the threshold and the calibrator on the claims that they were chosen on; None without a threshold.
        out_of_fold: every claim judged by what was chosen without its document.
        crossfit: how.
        resampled: the bootstrap of the out-of-fold figures, by name.
        guarantee: None where none was asked for.
        reliability: of the score and of each calibrator's out-of-fold probabilities, by kind.
        domains: by name, from out-of-fold decisions.
        notes: what a reader should know.
    """

    spec: Spec
    constraints: list[Constraint]
    comparison: Comparison
    scores: Floats
    choice: Choice
    calibrator: Calibrator
    in_sample: Measured | None
    out_of_fold: Measured
    crossfit: CrossFit
    resampled: dict[str, Floats]
    guarantee: Guarantee | None
    reliability: dict[str, Reliability]
    domains: list[Domain]
    notes: list[str]

    @property
    def judged(self) -> bool:
        """Whether some fold found a threshold, so that out-of-fold figures say something."""
        return any(threshold is not None for threshold in self.crossfit.thresholds)

    def failures(self) -> list[str]:
        """A sentence for each thing asked for that is not attainable on these data."""
        unattained = [str(self.guarantee)] if self.guarantee and self.guarantee.threshold is None else []
        return [self.choice.why] * bool(self.choice.why) + unattained

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON values, without the arrays of n claims."""
        point, guarantee = self.choice.point, self.guarantee
        return {
            "threshold": point.threshold if point else None,
            "comparison": self.comparison,
            "rule": self.spec.rule,
            "constraints": [asdict(one) for one in self.constraints],
            "attainable": point is not None,
            "why_not": self.choice.why or None,
            "in_sample": asdict(self.in_sample) if self.in_sample else None,
            "out_of_fold": asdict(self.out_of_fold),
            "folds": {"thresholds": self.crossfit.thresholds, "why_not": self.crossfit.whys},
            "guarantee": asdict(guarantee) | {"says": str(guarantee)} if guarantee else None,
            "calibrator": dict(self.calibrator),
            "reliability": {name: asdict(one) for name, one in self.reliability.items()},
            "domains": [asdict(one) for one in self.domains],
            "notes": self.notes,
        }


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # as in cross_fit
def study(data: Labelled, spec: Spec) -> Study:
    """Choose a threshold by ``spec`` on ``data`` and measure it in sample and out of fold.

    With a calibrator the threshold is chosen on out-of-fold probabilities, and what is handed out is the calibrator
    fitted on all claims. ConfigurationError for an unknown rule, a constraint that cannot be read, or too few groups.
    """
    rule, constraints = named_rule(spec.rule), parse_constraints(spec.constraints)
    comparison, kind = spec.comparison or data.comparison, spec.calibrator
    inputs = data.scores[:, None]
    if needs_texts(kind) and data.texts is not None:
        inputs = np.hstack([inputs, anchor_features(data.texts)])
    crossed = cross_fit(kind, inputs, data.positive, data.groups, rule, constraints, comparison, spec.folds, spec.seed)
    choice = choose(crossed.scores, data.positive, rule, constraints, comparison)
    calibrator = fit(kind, inputs, data.positive)
    in_sample = None
    if choice.point is not None:
        supported = passes(apply(calibrator, inputs), choice.point.threshold, comparison)
        in_sample = _measured(supported, data, spec)[0]
    judged, resampled = _measured(crossed.supported, data, spec)
    guarantee = _guarantee(crossed.scores if kind == "stack" else data.scores, data, spec, comparison)
    kinds: list[Kind] = ["none", "isotonic", "logistic", *(["stack"] if kind == "stack" else [])]  # type: ignore[list-item]
    return Study(
        spec=spec,
        constraints=constraints,
        comparison=comparison,
        scores=crossed.scores,
        choice=choice,
        calibrator=calibrator,
        in_sample=in_sample,
        out_of_fold=judged,
        crossfit=crossed,
        resampled=resampled,
        guarantee=guarantee,
        reliability={
            one: reliability(out_of_fold(one, inputs, data.positive, crossed.fold), data.positive, spec.bins)
            for one in kinds
        },
        domains=by_domain(crossed.supported, data.positive, data.domains, spec.confidence),
        notes=[*data.notes, *_notes(data, spec, constraints, crossed, judged, guarantee)],
    )


def _measured(supported: Any, data: Labelled, spec: Spec) -> tuple[Measured, dict[str, Floats]]:
    found = decided_figures(supported, data.positive)
    resampled = bootstrap(supported, data.positive, data.groups, spec.bootstrap, spec.seed)
    exact = exact_intervals(found, spec.confidence)
    return Measured(found, exact, percentiles(resampled, spec.confidence)), resampled


def _guarantee(scores: Floats, data: Labelled, spec: Spec, comparison: Comparison) -> Guarantee | None:
    asked = spec.guarantee
    if asked.precision is None:
        return None
    used = np.arange(len(scores)) if asked.unit == "claim" else one_of_each(data.groups, spec.seed)
    return guaranteed_threshold(scores[used], data.positive[used], asked.precision, asked.confidence, comparison)


def _notes(
    data: Labelled,
    spec: Spec,
    constraints: list[Constraint],
    crossed: CrossFit,
    judged: Measured,
    guarantee: Guarantee | None,
) -> list[str]:
    notes = []
    if crossed.whys:
        notes.append(
            f"{len(crossed.whys)} of {spec.folds} folds found no threshold on the other folds:"
            " their claims count as not supported"
        )
    missed = [one for one in constraints if not one.holds(judged.figures[one.figure])]
    if missed and len(crossed.whys) < spec.folds:
        shown = ", ".join(f"{one.figure.replace('_', ' ')} {judged.figures[one.figure]:.3f}" for one in missed)
        notes.append(f"out of fold the constraints are missed: {shown}; expect new data to miss them too")
    if guarantee is None:
        return notes
    if spec.calibrator == "stack":
        notes.append("the guarantee is on out-of-fold probabilities: for the stack fitted on all claims it is no proof")
    elif spec.calibrator != "none":
        notes.append("the guarantee is on the score before calibration")
    documents = len(np.unique(data.groups))
    if documents == len(data.groups):
        return notes
    if spec.guarantee.unit == "document":
        notes.append(f"the guarantee takes one claim of each of {documents} documents, which it assumes independent")
    else:
        notes.append(f"the guarantee assumes that claims are independent, and {documents} documents have several")
    return notes
