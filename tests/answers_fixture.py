"""Synthetic run directories of answers, for the tests of what reads one."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verifier.answers.records import Answer, CheckedAnswer, CheckedClaim, Cited, unavailable
from verifier.answers.schemas import answer_row, checked_row, checked_table
from verifier.fusion.redaction import NOTICE
from verifier.protocol import PairError, ScoredPair
from verifier.report.answer_figures import FUSION_VERDICTS
from verifier.schemas import REJECT_SCHEMA

DRAFT = "It opened in 1932 and is blue. It is tall."


def claim(answer: str, part: str, verdict: str, **more: Any) -> CheckedClaim:
    start = answer.index(part)
    return CheckedClaim(
        **{"text": part, "start": start, "end": start + len(part), "verdict": verdict, "score": 0.6} | more
    )


def row_of(number: int, text: str, checked: CheckedAnswer, **more: Any) -> dict[str, Any]:
    answer = Answer(more.pop("answer_id", f"answer-{number}"), text, **more)
    return checked_row(answer_row(number, answer), checked, method="fusion", scorer={}, seconds=0.01)


def write_run(run_dir: Path, rows: Sequence[Any], rejects: Sequence[dict[str, Any]] = (), **run: Any) -> Path:
    for folder in ("results", "rejects"):
        (run_dir / folder).mkdir(parents=True)
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        pq.write_table(checked_table(part), run_dir / "results" / f"{number}.parquet")
    if rejects:
        pq.write_table(pa.Table.from_pylist(list(rejects), REJECT_SCHEMA), run_dir / "rejects" / "0.parquet")
    (run_dir / "run.json").write_text(json.dumps(run))
    return run_dir


def fusion_rows() -> list[dict[str, Any]]:
    span = Cited("span-7", "best", 0.9, "Opened in March 1932 by the mayor.")
    claims = (
        claim(DRAFT, "It opened in 1932", "supported", cited_markers=("S1", "S9"), unresolved_markers=("S9",)),
        claim(DRAFT, "is blue", "evidence_redacted", evidence=(span,)),
        claim(DRAFT, "It is tall.", "unsupported", numeric_gated=True, score=0.2, evidence=(span,)),
    )
    redacted = CheckedAnswer("verified", f"It opened in 1932 and is blue. {NOTICE}", claims, truncated=2)
    lost = unavailable("the embedder is not registered")
    return [
        row_of(0, DRAFT, redacted, category="bridges", scope="team-a"),
        row_of(1, "Not known.", CheckedAnswer("unavailable: …", None, error=lost), category="bridges"),
        row_of(2, "", CheckedAnswer("verified", "")),
        row_of(3, "So far.", CheckedAnswer("verified", "So far.", (claim("So far.", "So far.", "partial"),))),
    ]


def receipt_rows() -> list[dict[str, Any]]:
    text = "The drug works. It is cheap."
    both = (Cited("kb-1", "supports", 0.81, "It works well."), Cited("kb-2", "contradicts", 0.72, "It does not work."))
    pair = ScoredPair("single", ("kb-2",), both[1].text, "The drug works.", {"entailment": 0.01, "contradiction": 0.97})
    part = pair._replace(kind="window", values={"support": 0.123})
    claims = (
        claim(text, "The drug works.", "conflicting", evidence=both),
        claim(text, "It is cheap.", "unverified", score=-0.1),
    )

    def receipt(grounded: bool) -> str:
        return json.dumps({"is_grounded": grounded})

    checked = CheckedAnswer("verified", text, claims, grounded_fraction=0.5, receipt=receipt(False), pairs=(pair, part))
    whole = CheckedAnswer(
        "verified", "Yes it is.", (claim("Yes it is.", "Yes it is.", "supported"),), 0, None, 1.0, receipt(True)
    )
    nothing = CheckedAnswer("unknown: the answer has no claims", "Hm.", receipt=receipt(False))
    long = PairError("rejected", "pair_too_long", "the claim does not fit")
    return [
        row_of(0, text, checked),
        row_of(1, "Yes it is.", whole),
        row_of(2, "Hm.", nothing),
        row_of(3, "Long.", CheckedAnswer("unavailable: …", "Long.", error=long)),
    ]


def many_rows(n: int) -> list[dict[str, Any]]:
    draw = random.Random(3)
    lost = unavailable("no connection")
    rows = []
    for number in range(n):
        verdicts = draw.choices(FUSION_VERDICTS, (90, 5, 4, 1), k=draw.randint(0, 4))
        parts = [f"Statement {place} of answer {number}." for place in range(len(verdicts))]
        text = " ".join(parts)
        claims = tuple(
            claim(text, part, verdict, score=draw.random()) for part, verdict in zip(parts, verdicts, strict=True)
        )
        checked = CheckedAnswer("verified", text, claims) if number % 50 else CheckedAnswer("…", text, error=lost)
        rows.append(row_of(number, text, checked, category=f"category {number % 200}"))
    return rows
