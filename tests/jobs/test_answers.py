"""``python -m jobs.answers`` as a process of its own: all it writes, resumed after a kill, refused where it must be."""

import json
import sqlite3
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.jobs.driver import run, run_anew, run_forked, run_json, started
from tests.jobs.free_embedder import FreeEmbedder
from tests.jobs.inputs import write_lines
from tests.scorers.chat_server import ChatServer, Reply, completion, failure
from verifier.answers.receipted import ReceiptConfig, ReceiptedAnswers
from verifier.answers.records import Answer
from verifier.answers.results import read_answers
from verifier.answers.tables import write_tables
from verifier.decompose.receipt_sentences import ReceiptSentences
from verifier.factuality.corpus import Corpus, Hit, Passage
from verifier.fusion.redaction import NOTICE
from verifier.fusion.trace import plan_hash, read_trace
from verifier.pipeline.answers import AnswersActor
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.results import read_rejects
from verifier.scorers.words import WordsScorer

FREE = (
    "embedder._target_=free_embedder.FreeEmbedder",
    "embedder.revision=r1",
    "tracking=none",
)
ANSWERS = ("data=answers", "data.path=answers.jsonl")
RECEIPTS = ("check=receipts", "decompose=receipt_sentences", "data.corpus=passages.jsonl", "retrieval.shard_rows=20")


def answer_row(n: int) -> dict[str, Any]:
    spans = [{"span_id": f"p{k}", "text": f"Crane {n} lifts {k} tons."} for k in range(3)]
    return {"answer_id": f"a{n}", "answer": f"Crane {n} lifts 2 tons [S3]. Crane {n} lifts 9 tons.", "spans": spans}


def write_answers(folder: Path, count: int) -> None:
    bad = [{"answer_id": "bad", "answer": "x", "claims": [{"text": "x", "draft_span": [0, 9]}]}, {"answer_id": "worse"}]
    write_lines(folder / "answers.jsonl", [*(answer_row(n) for n in range(count)), *bad])


def checked(output: Path) -> list[dict[str, Any]]:
    return read_answers(output).drop("seconds").to_dicts()


def test_the_demo_answers_are_redacted_and_every_table_agrees(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    job = ("output.dir=out", "check.policy=redact", f"tracking.uri={uri}")
    status, out, errors = run_anew(tmp_path, *job, name="answers")
    assert status == 0, errors
    output = tmp_path / "out"
    rows, run_content = checked(output), run_json(output)
    claims = pl.read_parquet(output / "claims.parquet")
    delivered = pl.read_parquet(output / "delivered.parquet")
    traces = [read_trace(row) for row in pq.read_table(output / "traces.parquet").to_pylist()]
    lines = [read_trace(json.loads(line)) for line in (output / "traces.jsonl").read_text().splitlines()]
    assert len(rows) == len(delivered) == run_content["counts"]["answers"] and traces == lines
    assert len(claims) == run_content["counts"]["claims"] == sum(run_content["counts"]["verdicts"].values())
    assert {"supported", "unsupported"} <= set(claims["verdict"])
    for row, trace, handed in zip(rows, traces, delivered.to_dicts(), strict=True):
        assert trace.draft == row["answer"] == handed["answer"] and trace.plan_hash == plan_hash(trace.plan.spans)
        assert (NOTICE in (handed["delivered"] or "")) == any(c["verdict"] == "unsupported" for c in row["claims"])
        own = claims.filter(pl.col("answer_id") == row["answer_id"])
        assert own["number"].to_list() == list(range(len(trace.claims)))
        assert [(c.text, c.verdict.value, c.score) for c in trace.claims] == own.select(
            "text", "verdict", "score"
        ).rows()
    assert "report.html" in out and "unsupported" in out and (output / "report.html").stat().st_size > 10_000
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        metrics = dict(database.execute("select key, value from metrics"))
    assert metrics["claims"] == len(claims)
    assert metrics["verdict/supported"] == len(claims.filter(pl.col("verdict") == "supported"))


class Searcher:
    """The same corpus in one process."""

    def __init__(self, passages: list[Passage], ranking: Any) -> None:
        self.embedder = FreeEmbedder(revision="r1")
        self.corpus = Corpus(passages, self.embedder, ranking)

    def search_many(self, queries: Any, k: int, scopes: Any) -> list[list[Hit]]:
        return self.corpus.search_many(queries, k, scopes)

    def cuts(self, queries: Any) -> list[bool]:
        return self.embedder.cuts(queries)


def undisturbed(folder: Path, passages: list[Passage]) -> None:
    """What ``answers.jsonl`` comes to without Ray and without shards, in the tables of a run."""
    prepare(InputSpec("answers", str(folder.parent / "answers.jsonl")), str(folder))
    checker = ReceiptedAnswers(ReceiptSentences(), Searcher(passages, "embeddings"), ReceiptConfig(), WordsScorer())
    scorer = {name: str(getattr(WordsScorer(), name, "unknown")) for name in ("model", "revision", "dtype")}
    actor = AnswersActor(lambda: (checker, scorer), "receipts", 64, Mock())
    (folder / "results").mkdir()
    pq.write_table(actor(pq.read_table(folder / "work")), folder / "results" / "all.parquet")
    write_tables(str(folder), with_traces=False)


def test_killed_while_it_embeds_and_while_it_checks_it_resumes_to_the_same_end(tmp_path: Path) -> None:
    write_answers(tmp_path, 24)
    passages = [Passage(f"q{n}", f"Crane {n} lifts 2 tons today.") for n in range(200)]
    fields = [{"passage_id": passage.id, "text": passage.text} for passage in passages]
    write_lines(tmp_path / "passages.jsonl", [*fields, {"passage_id": "q"}])
    undisturbed(tmp_path / "whole", passages)
    job = (*FREE, *ANSWERS, *RECEIPTS, "retrieval.shard_rows=70", "checkpoint.max_rows_lost=8", "actors.batch_size=4")
    log, output = tmp_path / "log", tmp_path / "out"
    slow = {"FREE_DELAY": 0.3, "FREE_LOG": log}

    def embedded(ending: str) -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.endswith(ending)]

    for ending, count in (("today.", 60), ("9 tons.", 8)):  # while passages are embedded, while answers are checked
        with started(tmp_path, *job, "output.dir=out", name="answers", **slow) as driver:
            driver.wait_for(lambda: len(embedded(ending)) >= count)  # noqa: B023
            driver.kill()
    assert run_json(output)["status"] == "started" and len(embedded("9 tons.")) < 24
    status, out, errors = run(tmp_path, *job, "output.dir=out", name="answers", FREE_LOG=log)
    assert status == 0 and "2 input rows rejected" in out and "200 passages, 1 rows rejected" in out, errors
    assert checked(output) == checked(tmp_path / "whole")
    for name in ("claims.parquet", "delivered.parquet"):
        assert pl.read_parquet(output / name).equals(pl.read_parquet(tmp_path / "whole" / name))
    assert sorted((output / "receipts.jsonl").open()) == sorted((tmp_path / "whole/receipts.jsonl").open())
    again = embedded("today.")
    assert len(set(again)) == 200 and len(again) <= 200 + 80, "what was embedded before a kill is not embedded again"


def test_receipts_from_shards_on_ray_equal_those_of_one_process(tmp_path: Path) -> None:
    passages = [Passage(f"q{n}", f"Crane {n} lifts {n % 5} tons.", scope="north" if n % 3 else None) for n in range(50)]
    fields = [{"passage_id": p.id, "text": p.text, "kind": p.kind, "scope": p.scope} for p in passages]
    write_lines(tmp_path / "passages.jsonl", [*fields[:20], {"passage_id": "q3", "text": "again"}, *fields[20:]])
    rows = [
        {"answer_id": f"a{n}", "answer": f"Crane {n} lifts 2 tons. Crane {n} lifts no load.", "scope": scope}
        for n, scope in enumerate((None, "north", "south") * 4)
    ]
    write_lines(tmp_path / "answers.jsonl", rows)
    answers = [Answer(row["answer_id"], row["answer"], scope=row["scope"]) for row in rows]
    job = (*FREE, *ANSWERS, *RECEIPTS, "retrieval.index=index")
    for ranking, overrides in (("embeddings", ()), ("bm25", ("retrieval.ranking=bm25",))):
        status, _, errors = run(tmp_path, *job, *overrides, f"output.dir={ranking}", name="answers", FREE_LOG="log")
        assert status == 0, errors
        checker = ReceiptedAnswers(ReceiptSentences(), Searcher(passages, ranking), ReceiptConfig(), WordsScorer())
        expected = [answer.receipt for answer in checker.check(answers)]
        assert (tmp_path / ranking / "receipts.jsonl").read_text().splitlines() == expected
        pairs = read_answers(tmp_path / ranking)["pairs"].explode().struct.field("entailment")
        assert set(pairs.drop_nulls()) <= {0.0, 1.0} and len(pairs)
    embedded = [line for line in (tmp_path / "log").read_text().splitlines() if line in {p.text for p in passages}]
    assert len(embedded) == 50 + sum(f"Crane {n} lifts 2 tons." in {p.text for p in passages} for n in range(12)) * 2
    index = tmp_path / "index"
    assert read_rejects(index)["code"].to_list() == ["repeated_passage_id"]
    status, _, errors = run(tmp_path, *job, "output.dir=other", "embedder.revision=r2", name="answers")
    assert status == 2 and "embedder.revision was r1, now it is r2" in errors
    job = (*job, "output.dir=again")
    shards = ("retrieval.shard_rows=1", "cluster.num_cpus=4")
    status, _, errors = run(tmp_path, *job, *shards, name="answers")
    assert status == 2 and "50 shards of 50 passages, and this cluster takes 32" in errors, errors
    next((index / "results").glob("*.parquet")).unlink()
    status, _, errors = run(tmp_path, *job, name="answers")
    assert status == 2 and "passages: delete index to embed the corpus again" in errors, errors
    (index / "index.json").write_text("{")
    status, _, errors = run(tmp_path, *job, name="answers")
    assert status == 2 and "index.json is damaged" in errors, errors


def test_a_model_that_cannot_list_claims_leaves_answers_unavailable_and_is_asked_again_for_those(
    tmp_path: Path,
) -> None:
    write_answers(tmp_path, 5)
    repaired = False

    def reply(message: str, asked_before: int) -> Reply:
        if not repaired and "Crane 3" in message:
            return failure(500)
        if not repaired and "Crane 4" in message:
            return completion("Here are the claims: none")
        n = message.split("Crane ")[1].split()[0]
        span = [0, len(f"Crane {n} lifts 2 tons [S3].")]
        return completion(
            json.dumps([{"claimText": f"Crane {n} lifts 2 tons.", "draftSpan": span, "citedMarkers": ["S3"]}])
        )

    with ChatServer(reply) as server:
        model = ("decompose=llm", "decompose.model=openai/tiny", f"decompose.api_base={server.url}")
        quick = ("decompose.retries=1", "decompose.backoff=0.01", "decompose.api_key_env=CLAIMS_KEY")
        job = (*FREE, *ANSWERS, *model, *quick, "check.policy=redact", "output.dir=out")
        status, out, errors = run(tmp_path, *job, name="answers", CLAIMS_KEY="sk-secret-42")
        assert status == 0 and "2 not verified" in out and "2 withheld" in out, errors
        rows = checked(tmp_path / "out")
        assert [row["verification"].partition(":")[0] for row in rows] == ["verified"] * 3 + ["unavailable"] * 2
        assert [row["delivered"] is None for row in rows] == [False] * 3 + [True] * 2
        assert [row["error_code"] for row in rows] == [None] * 3 + ["unavailable"] * 2
        assert [row["claims"][0]["verdict"] for row in rows[:3]] == ["supported"] * 3
        repaired = True
        server.requests.clear()
        status, out, errors = run(tmp_path, *job, name="answers", CLAIMS_KEY="sk-secret-42")
        assert status == 0 and len(server.requests) == 2, errors
        assert [row["verification"] for row in checked(tmp_path / "out")] == ["verified"] * 5
        assert len(pl.read_parquet(tmp_path / "out/claims.parquet")) == 5
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-secret-42" in path.read_bytes() for path in written), "the key stays in the environment"


REFUSED = {
    "a form of claims": (("data=claims", "data.path=answers.jsonl"), "reads answers, not claims"),
    "receipts without a corpus": ((*ANSWERS, "check=receipts"), "give data.corpus"),
    "a corpus that is not there": ((*ANSWERS, "check=receipts", "data.corpus=no.jsonl"), "no.jsonl does not exist"),
    "a scorer that nobody asks": (("scorer=offline",), "check=fusion asks no scorer"),
    "support alone on top": (("check=fusion+nli", "scorer=cosine"), "three labels"),
    "a policy that is not known": (("check.policy=hide",), "check.policy"),
    "bands turned round": (("check.partial=0.9",), "partial is 0.9, above supported"),
    "no passage a claim": ((*ANSWERS, *RECEIPTS, "check.k=0"), "k is 0"),
    "no passage a shard": (("retrieval.shard_rows=0",), "shard_rows is 0"),
    "a ranking that is not known": (("retrieval.ranking=luck",), "retrieval.ranking"),
    "a field that is not known": (("+check.foo=1",), "check.foo is no field"),
    "an embedder that is not there": (("embedder=transformer", "embedder.model=./nowhere"), "nowhere"),
    "an embedder without a name": (("embedder=transformer",), "embedder.model is not set"),
    "one of another name": (("check=luck",), "check=luck is no choice"),
    "no room": (("actors.num_cpus=99",), "99"),
    "an index in the run directory itself": ((*ANSWERS, *RECEIPTS, "retrieval.index=out/"), "a folder of its own"),
    "an index without a name": (("retrieval.index=''",), "retrieval.index is empty"),
    "answers without a path": (("data=answers", "data.path=''"), "set data.path"),
    "a group without a name": (("check=null",), "takes the name of one of its options"),
    "a ledger that is none": ((*ANSWERS, "ledger=passages.jsonl"), "the ledger passages.jsonl is damaged"),
    "members apart": (("actors.members=separate",), "keeps its models together"),
    "no word fits": (("embedder.max_length=2",), "no word fits"),
    "more passages than a claim can have": ((*ANSWERS, *RECEIPTS, "check.k=1001"), "k is 1001"),
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, Path]]:
    folders = {name: tmp_path_factory.mktemp("refused") for name in REFUSED}
    for folder in folders.values():
        write_answers(folder, 2)
        write_lines(folder / "passages.jsonl", [{"passage_id": "q", "text": "t"}])
    asked = [(folders[name], (*REFUSED[name][0], "tracking=none", "output.dir=out"), {}) for name in REFUSED]
    return {name: (*end, folders[name]) for name, end in zip(REFUSED, run_forked(asked, "answers"), strict=True)}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_configuration_ends_with_one_sentence(name: str, refused: dict[str, tuple[int, str, Path]]) -> None:
    status, errors, folder = refused[name]
    lines = [line for line in errors.splitlines() if line and not line.startswith("[")]
    assert status == 2 and REFUSED[name][1] in errors, errors
    assert len(lines) == 1 and "Traceback" not in errors
    assert not (folder / "out/results").exists()
