"""The run directory that a notebook reads: a person's own, or a third of the demo verified here, without Ray."""

import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq
from pictures import output_folder

from verifier.assays.sealing import refuse_sealed
from verifier.demo import demo_path
from verifier.pipeline.execution import write_run
from verifier.pipeline.prepare import InputSpec, prepare
from verifier.protocol import run_plan
from verifier.records import VerificationPolicy
from verifier.results import result_row, results_table, scan_folder
from verifier.schemas import WORK_SCHEMA, claim_from_row
from verifier.scorers.base import ask_round
from verifier.scorers.offline import OfflineScorer
from verifier.search.exhaustive import ExhaustiveGroups

EVERY = 3  # line of the demo corpus is read: enough of every category
SEARCH = {"exhaustive": True, "max_group_size": 2, "group_candidate_limit": 8}


def run_directory() -> str:
    """The finished run that the environment variable RUN_DIR names; without it ``demo_run`` beside the pictures.

    A run of a sealed cohort raises SealedCohort. Its ledger is the file that LEDGER names, else runs/assays.jsonl.
    """
    run_dir = os.environ.get("RUN_DIR") or demo_run(tempfile.mkdtemp(prefix="demo-run-", dir=output_folder()))
    refuse_sealed(run_dir, os.environ.get("LEDGER", "runs/assays.jsonl"))
    return run_dir


def demo_run(run_dir: str) -> str:
    """Every third demo claim decided by the method ``groups`` on offline scores, with every pair that a sweep needs.

    What ``jobs.verify`` makes of them with the same policy, but in this process and without a report.
    """
    scorer = OfflineScorer(device="cpu")
    policy = VerificationPolicy(model=scorer.model, revision=scorer.revision)
    identity = {"model": scorer.model, "revision": scorer.revision}
    method = ExhaustiveGroups(policy, scorer.revision, SEARCH)
    claims_file = Path(run_dir) / "claims.jsonl"
    lines = demo_path().read_text(encoding="utf-8").splitlines(keepends=True)
    claims_file.write_text("".join(lines[::EVERY]), encoding="utf-8")
    prepared = prepare(InputSpec("claims", str(claims_file)), run_dir, policy.max_evidence)
    work = scan_folder(run_dir, "work", WORK_SCHEMA).sort("row_id").collect().to_dicts()
    claims = [claim_from_row(row) for row in work]
    outcomes = run_plan(method.plan(claims), lambda pairs: ask_round(scorer, pairs, method.asks))
    rows = [
        result_row(row, outcome, method=method.name, dtype=scorer.dtype, seconds=0.0, **identity)
        for row, outcome in zip(work, outcomes, strict=True)
    ]
    results = Path(run_dir) / "results"
    results.mkdir(exist_ok=True)
    pq.write_table(results_table(rows), results / "0.parquet")
    settings = {"method": method.name, "policy": policy.model_dump(mode="json"), "scorer": identity}
    run = {"status": "finished", "identity": settings, "input": asdict(prepared), "model": identity}
    write_run(run_dir, run)
    return run_dir
