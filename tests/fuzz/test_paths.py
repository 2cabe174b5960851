"""Names from data are never names of files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import answers_fixture, run_fixture
from verifier.answers.records import CheckedAnswer
from verifier.answers.tables import write_tables
from verifier.assays.cohorts.writing import write_claims
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.records import Claim, Evidence, Status
from verifier.report import write_report
from verifier.report.answers import write_answer_report

NAMES = (
    "../../escaped",
    "/tmp/escaped-claim-verifier",
    "..\\escaped",
    "file:///tmp/escaped-claim-verifier",
    "s3://user:password@bucket/escaped",
    "http://127.0.0.1:9/escaped",
    "~/escaped",
    "a\0b",
    "CON",
    "=cmd|'/C calc'!A0",
    "*?[x]",
    "." * 300,
    "x/" * 300,
)
CLAIMS = [
    Claim(name, f"Claim {name}", (Evidence(name, name),), label="supported", category=name, document_id=name)
    for name in NAMES
]


def _prepare(folder: Path) -> None:
    rows = [
        {"claim_id": name, "claim": name, "category": name, "document_id": name, "_file": name}
        | {"evidence": [{"reference": name, "text": name}] * copies}
        for name in NAMES
        for copies in (1, 2)  # one that is taken and one that is rejected
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = prepare(InputSpec("claims", str(folder / "in.jsonl")), str(folder / "out"))
    assert (summary.rows, summary.rejects) == (len(NAMES), len(NAMES))


def _joined(folder: Path) -> None:
    (folder / "c.jsonl").write_text(
        "".join(json.dumps({"claim_id": name, "claim": name, "evidence_set": name}) + "\n" for name in NAMES)
    )
    (folder / "e.jsonl").write_text(
        "".join(json.dumps({"evidence_set": name, "reference": name, "text": name}) + "\n" for name in NAMES)
    )
    spec = InputSpec("joined", str(folder / "c.jsonl"), str(folder / "e.jsonl"))
    assert prepare(spec, str(folder / "out")).rows == len(NAMES)


def _report(folder: Path) -> None:
    rows = [
        run_fixture.row_of(claim, run_fixture.make_outcome(claim, Status.INSUFFICIENT, (0.3, 0.1)), number)
        for number, claim in enumerate(CLAIMS)
    ]
    run_fixture.write_run(folder / "out", rows, model={"model": NAMES[0]}, input={NAMES[0]: NAMES[3]})
    write_report(folder / "out")


def _answers(folder: Path) -> None:
    rows = [
        answers_fixture.row_of(n, name, CheckedAnswer("verified", name), answer_id=name, category=name, scope=name)
        for n, name in enumerate(NAMES)
    ]
    answers_fixture.write_run(folder / "out", rows)
    write_answer_report(folder / "out")
    write_tables(str(folder / "out"), with_traces=True)


def _cohort(folder: Path) -> None:
    write_claims(CLAIMS, folder / "out" / "cohort.jsonl")


@pytest.mark.parametrize("write", [_prepare, _joined, _report, _answers, _cohort])
def test_writers_name_their_own_files(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    write(inside)
    found = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    made = [path for path in found if not path.is_relative_to("a/b/c/out")]
    assert {path.name for path in made} <= {"a", "b", "c", "in.jsonl", "c.jsonl", "e.jsonl"}
    assert not [path for path in found if "escaped" in path.name or len(path.name) > 40]
    assert not Path("/tmp/escaped-claim-verifier").exists()
