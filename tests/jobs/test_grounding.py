"""Jobs with ``method=grounding``: ensembles, cited answers, a judge whose failures are asked again."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.jobs.driver import run, run_json
from tests.jobs.inputs import write_claims, write_lines
from tests.scorers.chat_server import ChatServer, Reply, completion, failure
from tests.shared import SHARED, needs_shared, read_lines
from tests.tiny_models import save_tiny, save_tiny_flan_t5
from verifier.results import read_results, scored_pairs

GROUNDING = ("method=grounding", "tracking=none", "output.dir=out")
ANEW = ("scorer=ensemble", "~scorer.members.hhem", "~scorer.members.minicheck")


@pytest.fixture
def wice_100(tmp_path: Path) -> dict[str, float]:
    """The 100 WiCE claims that both recorded models cover, as a file; claim id to the smaller of the two scores."""
    t5 = json.loads((SHARED / "wice/t5-3b-anli-wice.test.scores.json").read_text())
    recorded = {row["id"]: max(row["probs"]) for row in read_lines("wice/minicheck-flan-t5-large.test.scores.jsonl")}
    both = {name: min(t5[name], recorded[name]) for name in t5.keys() & recorded.keys()}
    rows = [row for row in read_lines("wice/test.jsonl") if row["meta"]["id"] in both]
    write_lines(tmp_path / "wice.jsonl", rows)
    return both


@needs_shared
def test_an_ensemble_of_recorded_scores_over_the_100_claims_of_wice(tmp_path: Path, wice_100: dict[str, float]) -> None:
    wice = SHARED / "wice"
    members = (
        "+scorer@scorer.members.minicheck2=recorded_support",
        "+scorer@scorer.members.t5=recorded_support",
        f"scorer.members.minicheck2.path={wice}/minicheck-flan-t5-large.test.scores.jsonl",
        f"scorer.members.t5.path={wice}/t5-3b-anli-wice.test.scores.json",
        "scorer.members.minicheck2.claims=wice.jsonl",
        "scorer.members.t5.claims=wice.jsonl",
    )
    status, out, errors = run(tmp_path, "data=wice", "data.path=wice.jsonl", *GROUNDING, *ANEW, *members)
    assert status == 0, errors
    rows = {row["claim_id"]: row for row in read_results(tmp_path / "out").to_dicts()}
    assert len(rows) == len(wice_100) == 100
    assert {name: row["support"] for name, row in rows.items()} == wice_100
    assert {name for name, row in rows.items() if row["status"] == "supported"} == {
        name for name, support in wice_100.items() if support >= 0.5
    }
    pairs = scored_pairs(tmp_path / "out")
    assert set(pairs["member"].drop_nulls()) == {"minicheck2", "t5"}
    # The run's own pairs replay it, and the rule can be chosen anew.
    replay = ("scorer=recorded_support", "scorer.path=out", "scorer.aggregation=max", "output.dir=again")
    status, _, errors = run(tmp_path, "data=wice", "data.path=wice.jsonl", *GROUNDING, *replay)
    assert status == 0, errors
    largest = pairs.filter(pl.col("kind") == "window").group_by("claim_id").agg(pl.col("support").max())
    assert dict(read_results(tmp_path / "again", ["claim_id", "support"]).iter_rows()) == dict(largest.iter_rows())
    assert "supported" in out


def test_two_real_models_on_two_actors_say_what_one_actor_says(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 12)
    save_tiny_flan_t5(tmp_path / "t5")
    save_tiny("deberta", tmp_path / "nli", seed=1)
    members = (
        "+scorer@scorer.members.t5=minicheck_flan_t5",
        "+scorer@scorer.members.nli=nli",
        "scorer.members.t5.model=t5",
        "scorer.members.nli.model=nli",
        "scorer.members.t5.revision=null",
        "scorer.members.nli.revision=null",
    )
    job = ("data=claims", "data.path=claims.jsonl", *GROUNDING, *ANEW, *members, "actors.num_cpus=1")
    status, _, errors = run(tmp_path, *job)
    assert status == 0, errors
    status, _, errors = run(tmp_path, *job, "actors.members=separate", "cluster.num_cpus=5", "output.dir=apart")
    assert status == 0, errors
    together, apart = (scored_pairs(tmp_path / name) for name in ("out", "apart"))
    assert set(apart["member"].drop_nulls()) == {"t5", "nli"} and apart.height == together.height == 36
    assert (apart["support"] - together["support"]).abs().max() < 1e-5  # type: ignore[operator]


def test_cited_answers_are_delivered_or_refused(tmp_path: Path) -> None:
    documents = [{"doc_id": "d", "sentences": [{"id": "d:0", "text": "The bridge opened in 1932."}]}]

    def answer(name: str, *sentences: tuple[str, list[str]]) -> dict[str, object]:
        cited = [{"text": text, "supporting_sentence_ids": ids} for text, ids in sentences]
        return {"answer_id": name, "sentences": cited, "documents": documents}

    good, bare = ("The bridge opened in 1932.", ["d:0"]), ("Trust me.", [])
    rows = [answer("a", good), answer("b", good, bare), answer("b", good), answer("c", ("Who knows?", ["d:9"]))]
    write_lines(tmp_path / "answers.jsonl", rows)
    job = ("data=cited", "data.path=answers.jsonl", *GROUNDING, "policy.joint=space")
    status, out, errors = run(tmp_path, *job, "answers.strictness=strict")
    assert status == 0, errors
    assert "1 delivered, 1 refused" in out
    answers = pl.read_parquet(tmp_path / "out/answers.parquet").rows(named=True)
    assert [(row["answer_id"], row["delivered"], row["unsupported"]) for row in answers] == [
        ("a", True, []),
        ("b", False, [1]),
    ]
    assert "without support" in answers[1]["reason"]
    rejects = pl.read_parquet(tmp_path / "out/rejects/*.parquet").select("claim_id", "code").rows()
    assert rejects == [("b", "repeated_answer_id"), ("c", "unknown_sentence_id")]
    status, out, errors = run(tmp_path, *job, "answers.strictness=loose")
    assert status == 0 and "2 delivered, 0 refused" in out, errors


def test_a_judge_that_fails_leaves_claims_unscored_and_the_same_command_asks_for_those_alone(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 10)
    repaired = False

    def answer(message: str, asked_before: int) -> Reply:
        claim = json.loads(message)["claim"]
        if not repaired and claim == "Claim 3 holds.":
            return failure(500)
        if not repaired and claim == "Claim 5 holds.":
            return completion('{"supported": tru')
        if claim == "Claim 7 holds." and not asked_before:
            return failure(429, retry_after="0")
        return completion('{"supported": true, "confidence": 0.9}')

    with ChatServer(answer) as server:
        judge = ("scorer=llm_judge", "scorer.model=openai/tiny", f"scorer.api_base={server.url}")
        quick = ("scorer.retries=2", "scorer.backoff=0.01", "scorer.api_key_env=JUDGE_KEY")
        job = ("data=claims", "data.path=claims.jsonl", "method=grounding", *judge, *quick)
        job = (*job, "output.dir=out", "tracking.uri=sqlite:///mlflow.db")
        status, out, errors = run(tmp_path, *job, JUDGE_KEY="sk-secret-42")
        assert status == 0, errors
        rows = read_results(tmp_path / "out")
        unscored = rows.filter(pl.col("outcome") == "unscored").select("row_id", "status", "error_code").rows()
        assert unscored == [(3, "insufficient", "server_error"), (5, "insufficient", "unreadable_answer")]
        session = run_json(tmp_path / "out")["this_session"]
        counted = {name: session[name] for name in ("pairs", "unscored", "calls", "retried")}
        assert counted == {"pairs": 10, "unscored": 2, "calls": 13, "retried": 3} and len(server.requests) == 13
        assert "unscored" in out and "server_error" in (tmp_path / "out/report.html").read_text()
        server.requests.clear()
        repaired = True
        status, _, errors = run(tmp_path, *job, JUDGE_KEY="sk-secret-42")
        assert status == 0, errors
        asked = [json.loads(request["messages"][-1]["content"])["claim"] for request in server.requests]
        assert sorted(asked) == ["Claim 3 holds.", "Claim 5 holds."]
        again = read_results(tmp_path / "out")
        assert again["outcome"].to_list() == ["decided"] * 10 and again["support"].to_list() == [0.9] * 10
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-secret-42" in path.read_bytes() for path in written), "the key stays in the environment"


def test_a_dry_run_prints_what_a_run_would_cost_and_scores_nothing(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 30, broken={3: {"claim": ""}})
    save_tiny("deberta", tmp_path / "nli")
    model = ("scorer=nli", "scorer.model=nli", "scorer.revision=null")
    job = ("data=claims", "data.path=claims.jsonl", *GROUNDING, *model, "policy.premise=groups")
    status, out, errors = run(tmp_path, *job, "run.dry=true")
    assert status == 0, errors
    for line in ("30 claims", "1 rejected rows", "60 pairs of the first round", "30 further pairs"):
        assert line in out, out
    assert "FLOPs" in out and "e+" in out
    assert not (tmp_path / "out/results").exists() and not (tmp_path / "out/run.json").exists()
