"""The answers that a report shows: some of every kind, with their claims and the evidence beside them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from verifier.answers.results import scan_answers
from verifier.digests import sha256_text
from verifier.fusion.redaction import NOTICE
from verifier.report.answer_figures import STATE, WORST_FIRST
from verifier.report.examples import PASSAGES_SHOWN, cut
from verifier.report.highlight import pieces, shown_length

AT_MOST = 40
FAILED = 3  # answers of one error code
CATEGORIES = 10  # that are looked at
CLAIMS_SHOWN = 120  # of one answer
MARKERS_SHOWN = 12  # of one claim
ANSWER_SHOWN = 6000  # characters
KINDS_SHOWN = 30
_VALUES = ("entailment", "contradiction", "support")


@dataclass(frozen=True, slots=True)
class Kind:
    """Answers that came out alike.

    Attributes:
        state: see ``STATE``.
        code: the error code of unavailable and rejected ones.
        verdicts: those that occur among the claims, the worst first.
        answers: how many there are.
        row_ids: the first ``AT_MOST`` of them.
    """

    state: str
    code: str | None
    verdicts: tuple[str, ...]
    answers: int
    row_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PickedAnswers:
    """The rows to show, in order, and all kinds of answers, verified ones and the most frequent first."""

    row_ids: Sequence[int]
    kinds: tuple[Kind, ...]


def pick_answers(run_dir: str | Path, categories: Sequence[str]) -> PickedAnswers:
    """Choose up to ``AT_MOST`` answers: the first of every kind and category, then the second, and so on."""
    answers = scan_answers(run_dir)
    kinds = _kinds(answers)
    of_kinds = [kind.row_ids[: FAILED if kind.code else AT_MOST] for kind in kinds]
    of_categories = (
        answers.filter(pl.col("category").is_in(categories[:CATEGORIES]), pl.col("outcome") == "decided")
        .group_by("category")
        .agg(pl.col("row_id").bottom_k(AT_MOST).sort())
        .collect(engine="streaming")
        .sort("category")["row_id"]
        .to_list()
    )
    in_turn = [row_id for turn in zip_longest(*of_kinds, *of_categories) for row_id in turn if row_id is not None]
    return PickedAnswers(sorted(list(dict.fromkeys(in_turn))[:AT_MOST]), kinds)


def _kinds(answers: pl.LazyFrame) -> tuple[Kind, ...]:
    verdicts = pl.col("claims").list.eval(pl.element().struct.field("verdict")).list.unique().list.sort()
    cells = (
        answers.select("row_id", STATE, "error_code", verdicts.list.join(" ").alias("verdicts"))
        .group_by("state", "error_code", "verdicts")
        .agg(pl.len().alias("n"), pl.col("row_id").bottom_k(AT_MOST).sort())
        .collect(engine="streaming")
        .sort(pl.col("error_code").is_not_null(), -pl.col("n").cast(pl.Int64), "state", "error_code", "verdicts")
    )
    return tuple(
        Kind(state, code, tuple(sorted((verdicts or "").split(), key=_place)), n, tuple(ids))
        for state, code, verdicts, n, ids in cells.head(KINDS_SHOWN).iter_rows()
    )


def _place(verdict: str) -> tuple[int, str]:
    return WORST_FIRST.index(verdict) if verdict in WORST_FIRST else -1, verdict


def read_answer_examples(run_dir: str | Path, row_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The answers to show, in the order of the input."""
    rows = scan_answers(run_dir).filter(pl.col("row_id").is_in(row_ids)).with_columns(STATE).drop("trace", "receipt")
    return [_example(row) for row in rows.sort("row_id").collect(engine="streaming").iter_rows(named=True)]


def _example(row: Mapping[str, Any]) -> dict[str, Any]:
    answer, delivered, claims = row["answer"], row["delivered"], row["claims"] or []
    marked = [(claim["start"], claim["end"], claim["verdict"]) for claim in claims[:CLAIMS_SHOWN]]
    length = shown_length(answer, marked, ANSWER_SHOWN)
    shown = [number for number, (start, _, _) in enumerate(marked, 1) if start < length]
    text = pieces(answer[:length], marked)
    first = {number: place for place, piece in reversed(list(enumerate(text))) for number in piece.numbers}
    values = {
        (pair["hypothesis_sha256"], reference): pair
        for pair in row["pairs"] or []
        if pair["kind"] != "window"
        for reference in pair["references"]
    }
    tally = Counter(claim["verdict"] for claim in claims)
    return {
        **{name: row[name] for name in ("row_id", "answer_id", "category", "scope", "state", "grounded_fraction")},
        "reason": _reason(row),
        "pieces": text,
        "characters_left_out": len(answer) - length,
        "withheld": delivered is None,
        "delivered": None if delivered in (None, answer) else _delivered(delivered),
        "claims": [_claim(number, claims[number - 1], first.get(number), values) for number in shown],
        "claims_left_out": len(claims) - len(shown),
        "tally": {verdict: tally[verdict] for verdict in sorted(tally, key=_place)},
        "truncated": row["truncated"],
    }


def _reason(row: Mapping[str, Any]) -> str | None:
    if row["error_code"] or row["error_message"]:
        return cut(": ".join(part for part in (row["error_code"], row["error_message"]) if part))
    return None if row["verification"] == "verified" else cut(row["verification"] or "")


def _delivered(text: str) -> dict[str, Any]:
    """The parts between notices; a notice stands after each but the last."""
    return {"parts": text[:ANSWER_SHOWN].split(NOTICE), "characters_left_out": max(0, len(text) - ANSWER_SHOWN)}


def _claim(
    number: int, claim: Mapping[str, Any], place: int | None, values: Mapping[tuple[str, str], Mapping[str, Any]]
) -> dict[str, Any]:
    unresolved = set(claim["unresolved_markers"] or ())
    markers = claim["cited_markers"] or []
    evidence = claim["evidence"] or []
    hypothesis = sha256_text(claim["text"])
    return {
        "number": number,
        "piece": place,
        **{name: claim[name] for name in ("verdict", "score", "numeric_gated")},
        "text": cut(claim["text"]),
        "markers": [(cut(marker), marker in unresolved) for marker in markers[:MARKERS_SHOWN]],
        "markers_left_out": len(markers[MARKERS_SHOWN:]),
        "evidence": [
            {**item, "text": cut(item["text"]), "values": _values(values.get((hypothesis, item["evidence_id"]), {}))}
            for item in evidence[:PASSAGES_SHOWN]
        ],
        "evidence_left_out": len(evidence[PASSAGES_SHOWN:]),
    }


def _values(pair: Mapping[str, Any]) -> dict[str, float]:
    """What a scorer said of a claim and one piece of evidence."""
    return {name: pair[name] for name in _VALUES if pair.get(name) is not None}
