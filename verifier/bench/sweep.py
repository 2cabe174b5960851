"""A sweep over a grid of thresholds beside single passes of ``verify_claims`` over the same claims and scores."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from verifier.bench.corpora import short_claims
from verifier.bench.figures import Figure, Part
from verifier.bench.scorers import FreeScorer
from verifier.protocol import ScoredPair, run_plan
from verifier.records import Claim, Status, VerificationPolicy
from verifier.scorers.base import score_round
from verifier.scorers.recorded import RecordedScorer
from verifier.search.exhaustive import ExhaustiveGroups
from verifier.search.verify import verify_claims
from verifier.sweep.figures import Labels, setting_row
from verifier.sweep.groups import GroupTable
from verifier.sweep.settings import Setting, settings

T = TypeVar("T")
_Clocks = dict[str, float]

TITLE = "a grid of thresholds, decided from recorded scores, beside passes of verify_claims"

_BATCH = 256  # claims that verify_claims is given together, as an actor does


def measure_sweep(
    policy: Mapping[str, Any],
    claims: int = 100_000,
    thresholds: str = "0.5:1.0:0.025",
    compared: int = 2,
    rounds: int = 1,
    target: float | None = None,
) -> Part:
    """Seconds of a whole sweep (facts, decisions and figures of every setting) over those of one pass.

    Args:
        policy: fields of VerificationPolicy.
        claims: synthetic claims with one to three passages.
        thresholds: both of the grid's axes, see ``verifier.sweep.settings``.
        compared: settings whose every decision is compared with that of ``verify_claims``.
        rounds: turns of the two sides.
        target: the most passes that the whole grid may cost.
    """
    base = VerificationPolicy(**policy)
    corpus = _corpus(claims)
    scored = _scored(corpus, base)
    rows = [(pair.premise, pair.hypothesis, *pair.values.values()) for pair in scored]
    recorded = RecordedScorer(rows, base.model, base.revision)  # type: ignore[arg-type]
    axes = {"entailment_threshold": thresholds, "contradiction_threshold": thresholds}
    grid = settings(VerificationPolicy, base.model_dump(), axes, (), choices=False)
    gc.freeze()  # as an actor does: neither side pays for collections through what stays
    passes, sweeps = list[_Clocks](), list[_Clocks]()
    for _ in range(rounds):
        passes.append(_timed(lambda: _pass(corpus, recorded, base))[1])
        table, seconds = _timed(lambda: _sweep(corpus, scored, grid))
        sweeps.append(seconds)
    both = list(zip(sweeps, passes, strict=True))
    different = sum(_different(table, corpus, recorded, one.policy) for one in _spread(grid, compared))
    figures = [
        *(
            Figure(f"passes_{clock}", [sweep[clock] / one[clock] for sweep, one in both], "x", most=target)
            for clock in ("cpu", "wall")
        ),
        Figure("sweep_seconds", [one["wall"] for one in sweeps], "s"),
        Figure("pass_seconds", [one["wall"] for one in passes], "s"),
        Figure("settings", [len(grid)]),
    ]
    checked = compared * len(corpus)
    note = f"{checked - different:,} of {checked:,} swept decisions are those of verify_claims"
    note = f"DECISIONS DIFFER: {note}" if different else note
    details = {"claims": len(corpus), "pairs": len(scored), "decisions_compared": checked, "different": different}
    return Part("sweep", TITLE, figures, (note,), details)


def _corpus(count: int) -> list[Claim]:
    """Synthetic claims, half of them labelled supported."""
    labels = (Status.SUPPORTED.value, Status.INSUFFICIENT.value)
    return [Claim(**line, label=labels[number % 2]) for number, line in enumerate(short_claims(count))]


def _scored(corpus: Sequence[Claim], policy: VerificationPolicy) -> list[ScoredPair]:
    """All pairs that any of the thresholds needs, with free scores."""
    search = {
        "exhaustive": True,
        "max_group_size": policy.max_group_size,
        "group_candidate_limit": policy.group_candidate_limit,
    }
    scorer = FreeScorer("sharp", policy.model, policy.revision)
    method = ExhaustiveGroups(policy, policy.revision, search)
    return [
        pair
        for start, end in pairwise([*range(0, len(corpus), _BATCH), len(corpus)])
        for outcome in run_plan(method.plan(corpus[start:end]), lambda pairs: score_round(scorer, pairs))
        for pair in outcome.pairs
    ]


def _pass(corpus: Sequence[Claim], scorer: RecordedScorer, policy: VerificationPolicy) -> None:
    for start in range(0, len(corpus), _BATCH):
        verify_claims(corpus[start : start + _BATCH], scorer, policy)


def _sweep(corpus: Sequence[Claim], scored: Sequence[ScoredPair], grid: Sequence[Setting]) -> GroupTable:
    """A sweep as the job makes it, from the pairs of a run to the figures of every setting."""
    labels = {
        (pair.premise_sha256, pair.hypothesis_sha256): (pair.values["entailment"], pair.values["contradiction"])
        for pair in scored
    }
    table = GroupTable(corpus, labels, [setting.policy for setting in grid])
    known = Labels.of(corpus)
    for number, setting in enumerate(grid):
        setting_row(number, setting, table.decide(setting.policy), known)
    return table


def _spread(grid: Sequence[Setting], count: int) -> list[Setting]:
    places = np.linspace(0, len(grid) - 1, count + 2).astype(int)[1:-1]
    return [grid[place] for place in places.tolist()]


def _different(table: GroupTable, corpus: Sequence[Claim], scorer: RecordedScorer, policy: VerificationPolicy) -> int:
    decisions = table.decide(policy)
    different = 0
    for index, record in enumerate(verify_claims(corpus, scorer, policy)):
        mine = decisions.decision(index)
        theirs = (record.status, record.supporting_group, record.refuting_group)
        bases = (record.supporting_basis, record.refuting_basis, record.limitations)
        different += (*theirs, *bases) != mine
    return different


def _timed(work: Callable[[], T]) -> tuple[T, _Clocks]:
    """What the work returns, and its seconds by either clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = work()
    return done, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
