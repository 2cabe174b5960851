"""Wrong configuration, bad input and failures: the exit status, and the one sentence on standard error."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.jobs.driver import FREE, run, run_forked
from tests.jobs.inputs import claim_row, write_claims
from tests.tiny_models import save_tiny
from verifier.assays.cohorts.identity import identity_of_texts
from verifier.assays.ledger import append
from verifier.digests import sha256_file

CLAIMS = ("data=claims", "data.path=claims.jsonl")
RAY_NOISE = ("authentication_token_setup", "rpc_client.h")  # written by Ray itself where a case needs a cluster
NLI = ("scorer=cross_encoder", "scorer.revision=null")


@dataclass(frozen=True)
class Case:
    overrides: tuple[str, ...]
    says: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], object] = lambda folder: None


def _finished(folder: Path, **changes: object) -> None:
    """What a finished run of another input leaves, but for its results."""
    output = folder / "out"
    output.mkdir()
    run = {"status": "finished", "identity": {}, "input": {"inputs": []}, "counts": {}, **changes}
    (output / "run.json").write_text(json.dumps(run))


def _damaged(content: bytes, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out/run.json").write_bytes(content)


def _results_in_the_way(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out/results").write_text("in the way")


def _two_labels(folder: Path) -> None:
    save_tiny("bert", folder / "model", labels=("yes", "no"))


def _file_in_the_way(folder: Path) -> None:
    (folder / "out").write_text("in the way")


def _sealed(folder: Path) -> None:
    """A ledger in which the claims, and so a run that was made of them, are sealed."""
    digest = sha256_file(folder / "claims.jsonl")
    _seal(folder, digest, "1" * 64)
    _finished(folder, input={"inputs": [{"sha256": digest}]})


def _sealed_in_another_file(folder: Path) -> None:
    row = claim_row(0)
    _seal(folder, "2" * 64, identity_of_texts(row["claim"], [item["text"] for item in row["evidence"]]))


def _seal(folder: Path, digest: str, identity: str) -> None:
    cohort = {"name": "held back", "files": {"claims": {"sha256": digest}}, "selected": None}
    body = {"sealed": True, "registration": "0" * 64, "identities": [identity], "cohort": cohort}
    append(folder / "ledger.jsonl", "registration", body)


CASES = {
    "unknown field": Case(("policy.foo=1",), ("policy.foo is no field",)),
    "unknown field added": Case(("+policy.foo=1",), ("policy.foo is no field", "entailment_threshold")),
    "unknown data field": Case(("+data.foo=1", *CLAIMS), ("data.foo is no field",)),
    "unknown input field": Case(("+input.foo=1",), ("input.foo is no field", "max_rejects")),
    "unknown actors field": Case(("+actors.foo=1",), ("actors.foo is no field", "batch_size")),
    "unknown checkpoint field": Case(("+checkpoint.foo=1",), ("checkpoint.foo is no field", "max_rows_lost")),
    "unknown scorer field": Case(("+scorer.foo=1",), ("scorer", "foo")),
    "unknown cluster field": Case(("+cluster.foo=1",), ("cluster", "foo")),
    "unknown tracking field": Case(("+tracking.foo=1",), ("tracking.foo",)),
    "unknown output field": Case(("+output.foo=1",), ("output.foo",)),
    "unknown section": Case(("+foo.bar=1",), ("foo",)),
    "threshold too large": Case(("policy.entailment_threshold=1.5",), ("policy.entailment_threshold is 1.5", "1")),
    "threshold too small": Case(("policy.contradiction_threshold=0.4",), ("policy.contradiction_threshold is 0.4",)),
    "threshold NaN": Case(("policy.entailment_threshold=nan",), ("policy.entailment_threshold is nan",)),
    "threshold text": Case(("policy.entailment_threshold=high",), ("policy.entailment_threshold is 'high'",)),
    "unknown choice": Case(("scorer=nope",), ("scorer=nope", "cross_encoder, ", "offline, recorded")),
    "no data.path": Case(("data=claims",), ("data.path",)),
    "no input file": Case(("data=claims", "data.path=nowhere.jsonl"), ("nowhere.jsonl does not exist", "path")),
    "no recorded file": Case(("scorer=recorded", "scorer.path=nowhere.jsonl"), ("scorer.path is nowhere.jsonl",)),
    "no scorer.path": Case(("scorer=recorded",), ("scorer.path",)),
    "two labels": Case(
        (*NLI, "scorer.model=model"), ("entailment, contradiction, neutral", "yes, no"), prepare=_two_labels
    ),
    "no hub": Case(
        ("scorer=cross_encoder",),
        ("scorer=offline", "scorer=recorded", "directory"),
        {"HF_HOME": "empty"},
    ),
    "output is a file": Case((*FREE, *CLAIMS), ("output.dir", "out"), prepare=_file_in_the_way),
    "output cannot be made": Case(
        (*FREE, *CLAIMS, "output.dir=/proc/nowhere/run"), ("output.dir", "/proc/nowhere/run")
    ),
    "nothing may be lost": Case(("checkpoint.max_rows_lost=0",), ("checkpoint.max_rows_lost is 0", "at least 1")),
    "rows lost as text": Case(("checkpoint.max_rows_lost=few",), ("checkpoint.max_rows_lost is 'few'",)),
    "max below min": Case(("actors.min_size=2", "actors.max_size=1"), ("actors.min_size is 2", "actors.max_size 1")),
    "no GPU": Case((*FREE, *CLAIMS, "actors.num_gpus=1", "cluster.num_gpus=0"), ("actors.num_gpus=0", "cluster has 0")),
    "no cluster": Case((*FREE, *CLAIMS, "cluster=existing", "cluster.address=127.0.0.1:1"), ("127.0.0.1:1",)),
    "fails on a bad row": Case(
        (*FREE, *CLAIMS, "input.on_error=fail"), ("claims.jsonl:4", "claim is empty", "input.on_error=reject")
    ),
    "on_error misspelt": Case((*FREE, *CLAIMS, "input.on_error=stop"), ("input.on_error is 'stop'", "reject, fail")),
    "no output.dir": Case((*FREE, *CLAIMS, "output.dir=''"), ("output.dir is empty",)),
    "output.dir null": Case((*FREE, *CLAIMS, "output.dir=null"), ("output.dir is None",)),
    "sealed claims": Case((*FREE, *CLAIMS, "ledger=ledger.jsonl"), ("claims.jsonl", "held back"), prepare=_sealed),
    "sealed claims in another file": Case(
        (*FREE, *CLAIMS, "ledger=ledger.jsonl"), ("out belongs to", "held back"), prepare=_sealed_in_another_file
    ),
    "results is a file": Case((*FREE, *CLAIMS), ("out/results is a file",), prepare=_results_in_the_way),
    **{
        f"run.json damaged: {content[:20]!r}": Case(
            (*FREE, *CLAIMS), ("run.json is damaged", "output.dir"), prepare=partial(_damaged, content)
        )
        for content in (b'{"status": "fini', b"\xff", b"[" * 100_000, b'{"identity": [], "status": "", "input": {}}')
    },
    "inputs damaged": Case(
        (*FREE, *CLAIMS), ("run.json is damaged",), prepare=partial(_finished, input={"inputs": "x"})
    ),
    "output within the input": Case((*FREE, "data=claims", "data.path=."), ("out, which lies in ., the input",)),
    "GPUs below 0": Case(("cluster.num_gpus=-1",), ("cluster.num_gpus is -1",)),
    "part of two GPUs": Case(("actors.num_gpus=1.5",), ("actors.num_gpus is 1.5", "whole")),
    "a sliver of a processor": Case(("actors.num_cpus=1e-9",), ("actors.num_cpus is 1e-09", "0.0001")),
    "an absurd batch": Case(("actors.batch_size=100000000000000000000",), ("actors.batch_size", "1,000,000")),
    "an absurd object store": Case((*FREE, *CLAIMS, "cluster.object_store_gb=1e-9"), ("Ray cannot start", "memory")),
    "another run": Case((*FREE, *CLAIMS), ("belongs to another run",), prepare=_finished),
    "object store below 0": Case(("cluster.object_store_gb=-1",), ("cluster.object_store_gb is -1",)),
    "no processors": Case(("cluster.num_cpus=0",), ("cluster.num_cpus is 0",)),
    "processors NaN": Case(("actors.num_cpus=nan",), ("actors.num_cpus",)),
    "tracking misspelt": Case(("tracking.enabled=maybe",), ("tracking.enabled is 'maybe'",)),
    "rejects below 0": Case(("input.max_rejects=-1",), ("input.max_rejects is -1",)),
    "not an override": Case(("foo bar",), ("foo bar", "group.field=value")),
    "support where labels are asked": Case(
        ("scorer=recorded_support", "scorer.path=claims.jsonl"), ("method=grounding", "three labels")
    ),
    "no members": Case(("actors.members=separate", "method=grounding"), ("scorer=ensemble",)),
    "support threshold": Case(("method=grounding", "policy.threshold=2"), ("policy.threshold is 2",)),
    "unknown strictness": Case(("answers.strictness=lax",), ("answers.strictness is 'lax'",)),
    "unknown form": Case((*FREE, *CLAIMS, "data.form=table"), ("'table'", "claims", "joined")),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit status and standard error of every case."""
    folders = {name: tmp_path_factory.mktemp("case") for name in CASES}
    asked = []
    for name, case in CASES.items():
        write_claims(folders[name] / "claims.jsonl", 3, broken={3: {"claim": " "}})
        case.prepare(folders[name])
        overrides = dict(item.partition("=")[::2] for item in ("tracking=none", "output.dir=out", *case.overrides))
        arguments = [f"{key}={value}" if value else key for key, value in overrides.items()]
        asked.append((folders[name], arguments, {"FREE_LOADED": "loaded", **case.settings}))
    ended = run_forked(asked)
    assert not [folder for folder in folders.values() if (folder / "loaded").exists()], "a scorer was built"
    return dict(zip(CASES, ended, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_wrong_configuration_exits_2_with_a_sentence(answers: dict[str, tuple[int, str]], name: str) -> None:
    status, errors = answers[name]
    assert status == 2, errors
    assert "Traceback" not in errors
    sentences = [line for line in errors.splitlines() if line.strip() and not any(noise in line for noise in RAY_NOISE)]
    assert len(sentences) == 1, errors
    for words in CASES[name].says:
        assert words in sentences[0], errors


def test_too_many_rejects_exit_1_and_keep_what_was_read(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 5, broken={1: {"claim": ""}, 3: {"evidence": None}})
    status, _, errors = run(tmp_path, *FREE, *CLAIMS, "output.dir=out", "input.max_rejects=1")
    assert status == 1, errors
    assert "2 rows were rejected" in errors and "input.max_rejects is 1" in errors
    assert len(errors.strip().splitlines()) == 1
    assert json.loads((tmp_path / "out/prepare.json").read_text())["rejects"] == 2


def test_a_run_made_of_sealed_claims_is_not_swept(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 1)
    _sealed(tmp_path)
    asked = ("sweep.runs=out", "+sweep.grid.entailment_threshold=[0.8]", "ledger=ledger.jsonl", "tracking=none")
    [(status, errors)] = run_forked([(tmp_path, asked, {})], "sweep")
    assert status == 2 and "held back" in errors, errors
