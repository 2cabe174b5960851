"""Speed of the fusion matcher beside a plain Python implementation of its formulas, embedding free of cost."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from verifier.bench import plain_fusion
from verifier.bench.evidence_plans import Workload, workload
from verifier.bench.figures import Figure, Part
from verifier.fusion.batch import Batch, bare, marked_spans
from verifier.fusion.config import Formula
from verifier.fusion.matcher import match_drafts
from verifier.fusion.records import ClaimVerdict, Draft, DraftVerdict
from verifier.fusion.scoring import PlanUnits
from verifier.fusion.verdicts import Verdict

TITLE = "match_drafts beside the same formulas in plain Python, embedding free of cost, one core, interleaved"

_MAX_DIFFERENCE = 1e-12  # between scores of both sides: the matcher keeps 12 decimals
_REPEATS = 20  # of our scoring in a round: one pass takes ten milliseconds, too short for a clock
_NOTE = (
    "scoring begins where texts are read: tokens are counted, numbers found, markers resolved; from_tokens has our "
    "numbering of each plan's tokens inside the clock too; from_texts is all but embedding, here with every record"
)


def measure_fusion(
    drafts: int = 128, long_plan: int = 10_000, rounds: int = 5, seed: int = 0, target: float | None = None
) -> Part:
    """Fused pairs per CPU second of both sides, on drafts with ordinary plans and on a draft with one long plan.

    Both sides have one thread, and the vectors of all texts as they like them: an array here, lists of floats there.

    Args:
        drafts: drafts of eight claims with plans of 20 to 60 spans, which our side is given together.
        long_plan: spans in the plan of one more draft, measured on its own.
        rounds: how often both sides are measured, after one turn that compares their answers.
        seed: of the texts and vectors.
        target: how many times faster our scoring must be.
    """
    ordinary = np.random.default_rng(seed).integers(20, 60, drafts, endpoint=True).tolist()
    figures: list[Figure] = []
    details: dict[str, Any] = {"pairs_compared": 0, "claims_compared": 0, "claims_equal": 0}
    with threadpool_limits(1):
        for name, spans in (("drafts", ordinary), ("long_plan", [long_plan])):
            sides = _Sides(workload(spans, seed), Formula.model_validate({}))
            gc.freeze()  # as an actor does: neither side pays for collections through what it is given
            agreement = sides.compared()
            measured = sides.rounds(rounds)
            figures += _figures(name, measured, target)
            figures.append(Figure(f"{name}/max_score_difference", [agreement.difference], most=_MAX_DIFFERENCE))
            details["pairs_compared"] += agreement.pairs
            details["claims_compared"] += agreement.claims
            details["claims_equal"] += agreement.equal
            details[f"{name}/pairs"] = agreement.pairs
    return Part("fusion", TITLE, figures, (_agreement_note(details), _NOTE), details)


def _figures(name: str, measured: Sequence[Mapping[str, float]], target: float | None) -> list[Figure]:
    def ratio(ours: str, plain: str) -> list[float]:
        return [one[ours] / one[plain] for one in measured]

    return [
        Figure(f"{name}/scoring_ratio", ratio("ours_scoring", "plain_scoring"), "x", target),
        Figure(f"{name}/from_tokens_ratio", ratio("ours_from_tokens", "plain_scoring"), "x"),
        Figure(f"{name}/from_texts_ratio", ratio("ours_from_texts", "plain_from_texts"), "x"),
        *(
            Figure(f"{name}/{side}_{scope}_pairs_per_cpu_second", [one[f"{side}_{scope}"] for one in measured], "1/s")
            for scope in ("scoring", "from_texts")
            for side in ("ours", "plain")
        ),
    ]


def _agreement_note(details: Mapping[str, Any]) -> str:
    equal, claims = details["claims_equal"], details["claims_compared"]
    note = (
        f"{equal:,} of {claims:,} claims have the same verdict, best span, candidates and gates on both sides, and "
        f"equal cosines, coverages and scores up to {_MAX_DIFFERENCE:g}; {details['pairs_compared']:,} pairs"
    )
    return note if equal == claims else f"VERDICTS DIFFER: {note}"


class _Agreement(NamedTuple):
    claims: int
    equal: int
    pairs: int
    difference: float


class _Sides:
    """One workload on both sides."""

    def __init__(self, work: Workload, formula: Formula) -> None:
        self.work, self.formula = work, formula
        self.lists = {text: vector.tolist() for text, vector in work.vectors.items()}
        self.plans = self._read_plainly()
        self.batch = Batch.of(work.drafts)
        rows, texts = self.batch.rows_to_embed(), list(self.batch.features.position)
        self.place = np.zeros(len(texts), np.int64)
        self.place[rows] = np.arange(len(rows))
        self.embedder = _Given(work.vectors, [texts[row] for row in rows.tolist()])

    def compared(self) -> _Agreement:
        """What both sides say of every claim, from the texts on, and what our scoring says alone."""
        ours = [verdict for draft in self._from_texts() for verdict in draft.claims]
        plain = [verdict for plan in self._plainly_from_texts() for verdict in plan]
        alone = self._scored(self.batch)
        differences = [_difference(*both) for both in zip(ours, plain, strict=True)]
        equal = [
            worst <= _MAX_DIFFERENCE and verdict.verdict == band
            for worst, verdict, band in zip(differences, ours, alone, strict=True)
        ]
        pairs = sum(len(verdict.candidates) for verdict in ours)
        return _Agreement(len(ours), sum(equal), pairs, max(differences))

    def rounds(self, count: int) -> list[dict[str, float]]:
        """Pairs per CPU second of both sides in every scope, one mapping a round."""
        pairs = len(self.batch.candidates(self.embedder.vectors, self.place, self.formula.candidates_m).claims)
        works: dict[str, tuple[int, Callable[[], Any]]] = {
            "ours_scoring": (_REPEATS, partial(self._scored, self.batch)),
            "plain_scoring": (1, partial(self._scored_plainly, self.plans)),
            "ours_from_tokens": (_REPEATS, self._from_tokens),
            "ours_from_texts": (1, self._from_texts),
            "plain_from_texts": (1, self._plainly_from_texts),
        }
        return [
            {name: pairs / _cpu_seconds(work, repeats) for name, (repeats, work) in works.items()} for _ in range(count)
        ]

    def _scored(self, batch: Batch) -> list[Verdict]:
        pairs = batch.candidates(self.embedder.vectors, self.place, self.formula.candidates_m)
        matched = batch.scored(pairs, self.formula)
        return [self.formula.band(score) for score in matched.score[matched.best(len(batch.claims))].tolist()]

    def _from_tokens(self) -> list[Verdict]:
        units = PlanUnits.of(self.batch.features, self.batch.claim_texts, self.batch.span_texts)
        return self._scored(replace(self.batch, units=units))

    def _from_texts(self) -> list[DraftVerdict]:
        return match_drafts(self.work.drafts, self.embedder, self.formula)

    def _read_plainly(self) -> list[plain_fusion.PlainPlan]:
        return [_plain_plan(draft, self.lists) for draft in self.work.drafts]

    def _scored_plainly(self, plans: Sequence[plain_fusion.PlainPlan]) -> list[list[plain_fusion.PlainVerdict]]:
        return [plain_fusion.match_plan(plan, **self.formula.model_dump()) for plan in plans]

    def _plainly_from_texts(self) -> list[list[plain_fusion.PlainVerdict]]:
        return self._scored_plainly(self._read_plainly())


class _Given:
    """An embedder that has the vectors at hand, those of ``texts`` in their order."""

    model, revision = "given", "1"

    def __init__(self, known: Mapping[str, NDArray[np.float32]], texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.vectors = np.stack([known[text] for text in texts])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of the texts, which have to be all those that it was made for."""
        if texts != self.texts:
            raise ValueError("asked for other texts than those at hand")
        return self.vectors


def _plain_plan(draft: Draft, vectors: Mapping[str, Sequence[float]]) -> plain_fusion.PlainPlan:
    marked = marked_spans(draft.spans)
    return plain_fusion.PlainPlan(
        [plain_fusion.read(claim.text, vectors[claim.text]) for claim in draft.claims],
        [[place for marker in claim.cited_markers for place in marked[bare(marker)]] for claim in draft.claims],
        [plain_fusion.read(span.text, vectors[span.text]) for span in draft.spans],
    )


def _difference(ours: ClaimVerdict, plain: plain_fusion.PlainVerdict) -> float:
    """The largest difference between cosines, coverages and scores; infinite where anything else differs."""
    best = ours.best_span.index if ours.best_span else None
    same = (str(ours.verdict), best) == (plain.verdict, plain.best)
    places = [(one.span, one.gate_tripped) for one in ours.candidates]
    if not same or places != [(one.span, one.gate_tripped) for one in plain.pairs]:
        return float("inf")
    values = [
        (ours.score - plain.score,),
        *(
            (one.cosine - two.cosine, one.lexical - two.lexical, one.score - two.score)
            for one, two in zip(ours.candidates, plain.pairs, strict=True)
        ),
    ]
    return max(abs(value) for row in values for value in row)


def _cpu_seconds(work: Callable[[], Any], repeats: int) -> float:
    """CPU seconds of one call, over ``repeats`` calls."""
    started = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - started) / repeats
