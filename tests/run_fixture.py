"""A synthetic run directory, made of real verifications, for the tests of what reads one."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verifier.digests import sha256_text
from verifier.metrics import STATUSES
from verifier.protocol import Outcome, PairError, ScoredPair
from verifier.records import (
    Basis,
    Claim,
    Evidence,
    GroupScore,
    Limitation,
    LocalizedAssessment,
    Status,
    Verification,
    VerificationPolicy,
    claim_digest,
    evidence_digest,
    evidence_to_json,
    sealed,
)
from verifier.results import result_row, results_table
from verifier.schemas import REJECT_SCHEMA

POLICY = VerificationPolicy()
CATEGORIES = (
    ("plain support", "supported"),
    ("explicit refutation", "refuted"),
    ("contested", "contested"),
    ("unrelated distractor", "insufficient"),
    ("exhaustive claim", "incomplete"),
    ("speech-act trap", "insufficient"),
)
SUBJECTS = ("The Aldgate ferry", "Lot 14 of the vaccine", "The orchard bridge", "Ms Okonkwo", "The Meridian sensor")
FACTS = ("left at 09:40", "was recalled on Tuesday", "carries 3.5 tonnes", "moved to Lyon in March", "reads 21 °C")


def make_claim(number: int, label: str | None = None, category: str | None = None) -> Claim:
    subject, fact = SUBJECTS[number % 5], FACTS[number // 5 % 5]
    passages = (
        f"Log entry {number}: {subject} {fact}, according to the duty officer's notes.",
        f"{subject} was inspected twice that week; nothing unusual was found.",
    )
    evidence = tuple(Evidence(reference=f"doc-{number}:{k}", text=text) for k, text in enumerate(passages, 1))
    return Claim(f"claim-{number:05d}", f"{subject} {fact}.", evidence, label=label, category=category)


def make_verification(claim: Claim, status: Status, scores: Sequence[float]) -> Verification:
    """A sealed record of ``status``; ``scores`` are an entailment and a contradiction."""
    first = claim.evidence[0]
    entailment, contradiction = scores
    neutral = 1.0 - entailment - contradiction
    called = status != Status.INCOMPLETE
    group = ((first.reference,), (str(first.memory_id),), entailment, contradiction, neutral)
    supports, refutes = status in ("supported", "contested"), status in ("refuted", "contested")
    uncorroborated = status == Status.INSUFFICIENT and entailment >= POLICY.entailment_threshold
    limitations = (Limitation.COMPLETE_SET,) * (not called) + (Limitation.ENTAILMENT,) * uncorroborated
    localized = (
        LocalizedAssessment(*group[:2], ((1, 3),), sha256_text(first.text), True, *group[2:]),
        LocalizedAssessment(*group[:2], ((),)),
    )
    return sealed(
        Verification(
            claim=claim.claim,
            status=status,
            model=POLICY.model,
            requested_revision=POLICY.revision,
            resolved_revision=POLICY.revision if called else None,
            model_called=called,
            configuration_sha256=POLICY.digest(),
            claim_sha256=claim_digest(claim),
            evidence_sha256=evidence_digest(claim.evidence),
            supporting_group=(first.reference,) if supports else (),
            refuting_group=(claim.evidence[1].reference,) if refutes else (),
            supporting_basis=Basis.MODEL_ENTAILMENT if supports else None,
            refuting_basis=Basis.EXPLICIT_NEGATION_OVERLAP if refutes else None,
            group_scores=(GroupScore(*group),) if called else (),
            localized_assessments=localized if uncorroborated else (),
            limitations=limitations,
        )
    )


def make_outcome(claim: Claim, status: Status, scores: Sequence[float], windows: int = 1) -> Outcome:
    values = {"entailment": scores[0], "contradiction": scores[1], "neutral": 1.0 - sum(scores)}
    pairs = tuple(
        ScoredPair("single", (item.reference,), item.text, claim.claim, values, 0, windows) for item in claim.evidence
    )
    called = status != Status.INCOMPLETE
    return Outcome(make_verification(claim, status, scores), pairs if called else ())


def row_of(claim: Claim, outcome: Outcome, row_id: int, seconds: float = 0.01) -> dict[str, Any]:
    row = {"row_id": row_id, "claim_id": claim.claim_id, "category": claim.category, "label": claim.label}
    scorer = {"model": POLICY.model, "revision": POLICY.revision, "dtype": "float32"}
    return result_row(row, outcome, method="groups", seconds=seconds, **scorer)


def write_run(
    run_dir: Path, rows: Sequence[dict[str, Any]] = (), rejects: Sequence[dict[str, Any]] = (), **run: Any
) -> Path:
    """A run directory with these result and reject rows and, where ``run`` says anything, a run.json."""
    for folder in ("results", "rejects"):
        (run_dir / folder).mkdir(parents=True)
    half = len(rows) // 2  # two files, as from two blocks
    for number, part in enumerate((rows[:half], rows[half:])):
        if part:
            pq.write_table(results_table(part), run_dir / "results" / f"{number}.parquet")
    if rejects:
        pq.write_table(pa.Table.from_pylist(list(rejects), REJECT_SCHEMA), run_dir / "rejects" / "0.parquet")
    if run:
        (run_dir / "run.json").write_text(json.dumps(run))
    return run_dir


def write_work(run_dir: Path, claims: Sequence[Claim]) -> None:
    rows = [
        {"row_id": n, "claim_id": claim.claim_id, "claim": claim.claim, "evidence": evidence_to_json(claim.evidence)}
        for n, claim in enumerate(claims)
    ]
    (run_dir / "work").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), run_dir / "work" / "0.parquet")


def make_run(run_dir: Path, n: int, labelled: bool = True) -> Path:
    """A plausible run of ``n`` claims: mostly right, some wrong, a few unscored, windowed and rejected."""
    draw = random.Random(7)
    claims, rows = [], []
    for number in range(n):
        category, label = draw.choice(CATEGORIES)
        claim = make_claim(number, label if labelled else None, category)
        claims.append(claim)
        status = Status(label if draw.random() < 0.85 else draw.choice(STATUSES))
        high, low = draw.betavariate(9, 1), draw.betavariate(1, 6)
        entailment = high if status in ("supported", "contested") or category == "speech-act trap" else low
        contradiction = (1 - entailment) * (high if status == "refuted" else draw.random())
        outcome = make_outcome(claim, status, (entailment, contradiction), 3 if number % 40 == 5 else 1)
        if number % 60 == 11:
            outcome = Outcome(None, (), PairError("unscored", "model_failure", "the model returned NaN"))
        if number % 60 == 17:
            outcome = Outcome(None, (), PairError("rejected", "pair_too_long", "the claim has 612 tokens; 512 fit"))
        rows.append(row_of(claim, outcome, number, draw.lognormvariate(-4, 0.8)))
    bad = [
        ("unparseable_json", "line 12 is not JSON: expecting ',' delimiter", '{"claim": "a" "b"}'),
        ("unparseable_json", "line 90 is not JSON: unterminated string", '{"claim": "never en'),
        ("empty_passage", "evidence 2 has an empty text", '{"claim_id": "x", "evidence": [{"text": ""}]}'),
    ]
    rejects = [
        {"row_id": n + k, "claim_id": None, "source": f"claims.jsonl:{12 + 39 * k}", "code": c, "message": m, "raw": r}
        for k, (c, m, r) in enumerate(bad)
    ]
    write_run(
        run_dir,
        rows,
        rejects,
        config={"policy": POLICY.model_dump(mode="json"), "scorer": {"_target_": "verifier.scorers.CrossEncoder"}},
        counts={"claims": n, "pairs": 2 * n},
        timings={"prepare_read_seconds": 1.25, "load_seconds": 3.5, "model_seconds": 9.0, "verify_seconds": 12.5},
        input={"path": "claims.jsonl", "sha256": sha256_text("input"), "rows": n + len(bad)},
        model={"model": POLICY.model, "revision": POLICY.revision, "dtype": "float32"},
        versions={"claim-verifier": "0.1.0", "ray": "2.60.0", "torch": "2.9.0"},
    )
    write_work(run_dir, claims)
    return run_dir
