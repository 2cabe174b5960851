"""Sealed claims in the input of jobs: refused whatever form they come in, and no copy of them is kept."""

import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import DictConfig

from jobs.answers import plan_of as answers_plan
from jobs.verify import plan_of as verify_plan
from tests.assays.assay_files import fever_rows, write_rows
from tests.assays.sealed_place import Place
from verifier.assays.sealing import SealedCohort
from verifier.calibration.inputs import Input, read_input
from verifier.errors import ConfigurationError
from verifier.pipeline.answers import execute_answers
from verifier.pipeline.prepare import prepare
from verifier.pipeline.run import execute, prepared_input


def composed(job: str, *overrides: str) -> DictConfig:
    with initialize_config_module("conf", version_base=None):
        return compose(job, ["tracking=none", *overrides])


def claim_rows(prefix: str) -> list[dict[str, Any]]:
    rows = fever_rows(prefix)
    evidence = [[{"reference": "m", "text": text} for text in row["evidence"]] for row in rows]
    return [
        {"claim_id": row["id"], "claim": row["claim"], "evidence": e} for row, e in zip(rows, evidence, strict=True)
    ]


def verify(place: Place, rows: list[dict[str, Any]]) -> None:
    path = write_rows(place.folder / "claims.jsonl", rows)
    data = ("data=claims", f"data.path={path}", "scorer=words", f"ledger={place.ledger}")
    execute(verify_plan(composed("verify", *data, f"output.dir={place.folder / 'out'}")), lambda *_: None)


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_refused_verify_keeps_no_copy(place: Place) -> None:
    with pytest.raises(SealedCohort, match="out belongs to the sealed cohort"):
        verify(place, claim_rows("red"))
    assert written(place.folder / "out") <= {"lock"}


def test_what_a_run_has_begun_with_is_left(place: Place) -> None:
    plan = ("data=claims", f"data.path={write_rows(place.folder / 'claims.jsonl', claim_rows('red'))}", "scorer=words")
    output = place.folder / "out"
    config = composed("verify", *plan, f"ledger={place.ledger}", f"output.dir={output}")
    built = verify_plan(config)
    prepare(built.data, str(output), built.policy.max_evidence)
    inputs = json.loads((output / "prepare.json").read_text("utf-8"))["inputs"]
    (output / "run.json").write_text(json.dumps({"identity": {}, "status": "started", "input": {"inputs": inputs}}))
    before = written(output)
    with pytest.raises(SealedCohort):
        prepared_input(built, lambda *_: None)
    assert written(output) == before and "part-00000.parquet" in before


def answer_rows(prefix: str, *, declared: bool) -> list[dict[str, Any]]:
    rows = []
    for row in fever_rows(prefix):
        spans = [{"span_id": "s", "text": text} for text in row["evidence"]]
        if declared:
            claims = [{"text": row["claim"], "draft_span": [0, 2]}]
            rows.append({"answer_id": row["id"], "answer": "It did.", "spans": spans, "claims": claims})
        else:
            rows.append({"answer_id": row["id"], "answer": row["claim"], "spans": spans})
    return rows


@pytest.mark.parametrize("declared", [False, True])
def test_answers_that_are_sealed_claims_are_refused_and_not_kept(place: Place, declared: bool) -> None:
    path = write_rows(place.folder / "answers.jsonl", answer_rows("red", declared=declared))
    data = ("data=answers", f"data.path={path}", f"ledger={place.ledger}", f"output.dir={place.folder / 'out'}")
    plan = answers_plan(composed("answers", *data))
    with pytest.raises(SealedCohort, match=r"'The red ferry to Oslo left early\.' belongs to the sealed cohort"):
        execute_answers(plan, lambda *_: None)
    assert written(place.folder / "out") <= {"lock"}


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda content: b"\x28\xb5\x2f\xfd" + content,  # told by its first bytes alone
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("name", PACKED)
def test_a_table_packed_in_another_way_than_gzip_is_refused(tmp_path: Path, name: str) -> None:
    rows = [{"score": 0.9, "label": 1}, {"score": 0.1, "label": 0}]
    content = write_rows(tmp_path / "table.jsonl", rows).read_bytes()
    (tmp_path / "gzip").write_bytes(gzip.compress(content))
    assert read_input(Input(table=str(tmp_path / "gzip"))).positive.tolist() == [True, False]
    (tmp_path / "packed").write_bytes(PACKED[name](content))
    with pytest.raises(ConfigurationError, match=f"is compressed as {name}: unpack it, or use gzip"):
        read_input(Input(table=str(tmp_path / "packed")))
