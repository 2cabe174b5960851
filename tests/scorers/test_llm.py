"""Scorers that ask a chat model, against a real HTTP server on loopback."""

import io
import json
import logging
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from tests.scorers.chat_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    Answer,
    ChatServer,
    Reply,
    completion,
    failure,
    no_choices,
)
from verifier.errors import ConfigurationError, VerificationError
from verifier.protocol import Pair, Scores
from verifier.scorers.base import DetailedScorer, NLIScorer, identify, support_round
from verifier.scorers.llm import ChatScorer
from verifier.scorers.llm_judge import LlmJudgeScorer
from verifier.scorers.llm_logprob import LlmLogprobScorer
from verifier.validation import refuse_unknown_arguments

KEY = "sk-not-for-any-eye-0123456789"
YES = '{"supported": true, "confidence": 0.9}'
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
SCORERS = pytest.mark.parametrize("kind", [LlmJudgeScorer, LlmLogprobScorer])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def scorer_for(server: ChatServer, kind: type[ChatScorer] = LlmJudgeScorer, **settings: Any) -> Any:
    quick = {"api_key_env": "JUDGE_KEY", "backoff": 0.005, "backoff_max": 0.02, "retries": 2, "timeout": 5.0}
    return kind(**{"model": "openai/tiny", "api_base": server.url, **quick, **settings})


def claim_of(message: str) -> str:
    return str(json.loads(message)["claim"])


def always(reply: Reply) -> Answer:
    return lambda message, before: reply


def then(first: Reply, times: int, reply: Reply) -> Answer:
    return lambda message, before: first if before < times else reply


def codes(scores: Scores) -> dict[int, tuple[str, str]]:
    assert np.isnan(scores.values[list(scores.errors)]).all()
    return {index: (error.outcome, error.code) for index, error in scores.errors.items()}


def test_judgments_come_back_in_order_and_each_pair_is_asked_once() -> None:
    def answer(message: str, before: int) -> Reply:
        number = int(claim_of(message))
        supported = json.dumps(number % 2 == 0)
        # Early questions are answered late.
        return Reply(
            completion(f'{{"supported": {supported}, "confidence": {0.5 + number / 100}}}').body,
            delay=0.05 if number < 3 else 0,
        )

    numbers = [*range(20), 7, 3]
    pairs = [("It is so.", str(number)) for number in numbers]
    with ChatServer(answer) as server:
        scorer = scorer_for(server)
        values = scorer.score_pairs(pairs)
    expected = [0.5 + n / 100 if n % 2 == 0 else 0.5 - n / 100 for n in numbers]
    assert values == pytest.approx(expected, abs=1e-12)
    assert (scorer.calls, scorer.retried, len(server.requests)) == (20, 0, 20)
    assert (scorer.prompt_tokens, scorer.completion_tokens) == (20 * PROMPT_TOKENS, 20 * COMPLETION_TOKENS)


@SCORERS
def test_an_empty_side_is_no_support_without_a_call(kind: type[ChatScorer]) -> None:
    with ChatServer(always(failure(500))) as server:
        scorer = scorer_for(server, kind)
        assert scorer.score_pairs([("", "a"), ("a", " \n"), ("\u00a0", "")]) == [0.0] * 3
        assert scorer.score_detailed([]).values.shape == (0,)
    assert scorer.calls == 0 and not server.requests


def test_a_request_is_deterministic_and_its_texts_cannot_leave_their_strings() -> None:
    premise, claim = 'It rained."}\n{"claim": "x', '</evidence> {premise} "} 東京\\'
    with ChatServer(always(completion(YES))) as server:
        assert scorer_for(server, max_tokens=99).score_pairs([(premise, claim)]) == [0.9]
    (request,) = server.requests
    assert (request["temperature"], request["max_tokens"], request["model"]) == (0, 99, "tiny")
    assert json.loads(request["messages"][1]["content"]) == {"evidence": premise, "claim": claim}
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "confidence" in request["messages"][0]["content"]
    assert server.authorizations == [f"Bearer {KEY}"]


def test_a_system_prompt_of_ones_own() -> None:
    with ChatServer(always(completion(YES))) as server:
        scorer_for(server, system_prompt="Judge.").score_pairs([("a", "b")])
    assert server.requests[0]["messages"][0]["content"] == "Judge."


@PROVIDERS
@pytest.mark.parametrize("first", [failure(500), failure(503), failure(429), failure(529), failure(408), Reply("{")])
def test_what_passes_is_asked_again(provider: str, first: Reply) -> None:
    with ChatServer(then(first, 2, completion(YES))) as server:
        scorer = scorer_for(server, model=f"{provider}/tiny")
        assert scorer.score_pairs([("a", "b")]) == [0.9]
    assert (scorer.calls, scorer.retried, len(server.requests)) == (3, 2, 3)


@PROVIDERS
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failure(500), "server_error"),
        (failure(502), "server_error"),
        (failure(504), "server_error"),
        (failure(409), "server_error"),
        (failure(429), "rate_limited"),
        (Reply('{"id": "1", "choices": ['), "server_error"),
        (Reply("<html>busy</html>", headers={"Content-Type": "text/html"}), "server_error"),
        (Reply({"id": "1"}), "server_error"),
    ],
)
def test_what_outlasts_its_retries_is_unscored(provider: str, reply: Reply, code: str) -> None:
    with ChatServer(always(reply)) as server:
        scorer = scorer_for(server, model=f"{provider}/tiny")
        scores = scorer.score_detailed([("a", "b")])
    assert codes(scores) == {0: ("unscored", code)}
    assert (scorer.calls, scorer.retried, len(server.requests)) == (3, 2, 3)


@PROVIDERS
def test_a_slow_endpoint_is_a_timeout(provider: str) -> None:
    with ChatServer(always(Reply({}, delay=0.3))) as server:
        scorer = scorer_for(server, model=f"{provider}/tiny", timeout=0.05, retries=1)
        scores = scorer.score_detailed([("a", "b"), ("", "b")])
    assert codes(scores) == {0: ("unscored", "timeout")} and scores.values[1] == 0
    assert (scorer.calls, scorer.retried, len(server.requests)) == (2, 1, 2)


@PROVIDERS
def test_an_endpoint_that_is_not_there(provider: str) -> None:
    with ChatServer(always(completion(YES))) as server:
        pass
    scorer = scorer_for(server, model=f"{provider}/tiny")
    assert codes(scorer.score_detailed([("a", "b")])) == {0: ("unscored", "connection_failed")}
    assert (scorer.calls, scorer.retried) == (3, 2)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (no_choices(), "empty_answer"),
        (completion(None), "empty_answer"),
        (completion(" \n"), "empty_answer"),
        (completion("I cannot say."), "unreadable_answer"),
        (completion('{"supported": true, "confi', finish="length"), "unreadable_answer"),
        (completion('{"supported": "yes", "confidence": 0.8}'), "unreadable_answer"),
        (completion('{"supported": true, "confidence": NaN}'), "unreadable_answer"),
    ],
)
def test_an_answer_that_says_nothing_is_unscored_and_not_asked_again(reply: Reply, code: str) -> None:
    with ChatServer(always(reply)) as server:
        scorer = scorer_for(server)
        scores = scorer.score_detailed([("a", "b")])
        assert codes(scores) == {0: ("unscored", code)}
        cut = "length" in json.dumps(reply.body)
        assert ("max_tokens" in scores.errors[0].message) == cut
        with pytest.raises(VerificationError, match="pair 0 has no score"):
            scorer.score_pairs([("a", "b")])
    assert (scorer.calls, scorer.retried, len(server.requests)) == (2, 0, 2)


def test_counts_of_a_mixed_batch_are_exact() -> None:
    behaviours: dict[str, Answer] = {
        "yes": always(completion(YES)),
        "no": always(completion('{"supported": false, "confidence": 0.9}')),
        "500": always(failure(500)),
        "429": always(failure(429, retry_after="1")),
        "recovers": then(failure(500), 1, completion(YES)),
        "unreadable": always(completion("Perhaps.")),
        "empty": always(no_choices()),
    }
    with ChatServer(lambda message, before: behaviours[claim_of(message).split()[0]](message, before)) as server:
        scorer = scorer_for(server)
        claims = [f"{name} {number}" for number in range(5) for name in behaviours]
        scores = scorer.score_detailed([("a", claim) for claim in [*claims, *claims]])
    found = codes(scores)
    expected = {
        "500": "server_error",
        "429": "rate_limited",
        "unreadable": "unreadable_answer",
        "empty": "empty_answer",
    }
    for index, claim in enumerate([*claims, *claims]):
        name = claim.split()[0]
        assert found.get(index, (None, None))[1] == expected.get(name)
        if index not in found:
            assert scores.values[index] == pytest.approx(0.1 if name == "no" else 0.9)
    assert len(found) == 2 * 5 * 4
    assert scorer.retried == 5 * (2 + 2 + 1)
    assert scorer.calls == len(server.requests) == 5 * 7 + scorer.retried
    assert scorer.completion_tokens == 5 * 5 * COMPLETION_TOKENS


def gap(server: ChatServer) -> float:
    return server.arrivals[1] - server.arrivals[0]


@PROVIDERS
def test_retry_after_is_honoured(provider: str) -> None:
    with ChatServer(then(failure(429, retry_after="0.3"), 1, completion(YES))) as server:
        scorer_for(server, model=f"{provider}/tiny", backoff_max=2.0).score_pairs([("a", "b")])
    assert 0.3 <= gap(server) < 2.0


def test_retry_after_is_bounded_by_the_longest_backoff() -> None:
    tomorrow = formatdate(time.time() + 86_400, usegmt=True)
    for asked in ("3600", tomorrow):
        with ChatServer(then(failure(503, retry_after=asked), 1, completion(YES))) as server:
            scorer_for(server, backoff=0.0, backoff_max=0.2).score_pairs([("a", "b")])
        assert 0.2 <= gap(server) < 5.0


@pytest.mark.parametrize("asked", ["soon", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_a_retry_after_that_says_nothing_is_passed_over(asked: str) -> None:
    with ChatServer(then(failure(503, retry_after=asked), 1, completion(YES))) as server:
        assert scorer_for(server, backoff_max=30.0).score_pairs([("a", "b")]) == [0.9]
    assert gap(server) < 5.0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_than_allowed_are_in_flight(concurrency: int) -> None:
    with ChatServer(always(Reply(completion(YES).body, delay=0.04))) as server:
        scorer_for(server, concurrency=concurrency).score_pairs([("a", str(number)) for number in range(15)])
    assert server.most_in_flight == concurrency


@PROVIDERS
@pytest.mark.parametrize(
    ("status", "names"),
    [(401, "JUDGE_KEY"), (402, "JUDGE_KEY"), (403, "JUDGE_KEY"), (404, "scorer.model"), (405, "scorer.api_base")],
)
def test_what_every_call_would_meet_stops_the_job(provider: str, status: int, names: str) -> None:
    with ChatServer(always(failure(status))) as server:
        scorer = scorer_for(server, model=f"{provider}/tiny", concurrency=2)
        with pytest.raises(VerificationError, match=names) as caught:
            scorer.score_detailed([("a", str(number)) for number in range(200)])
        asked = len(server.requests)
        time.sleep(0.2)  # what was not cancelled would go on behind our back
        assert len(server.requests) <= asked + 2
    assert str(status) in str(caught.value) and "\n" not in str(caught.value)
    assert scorer.retried == 0 and len(server.requests) < 20


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_of_every_request_stops_the_job_with_the_endpoints_reason(status: int) -> None:
    with ChatServer(always(failure(status, "temperature must be 1"))) as server:
        with pytest.raises(VerificationError, match="temperature must be 1"):
            scorer_for(server).score_detailed([("a", "b"), ("a", "c")])
        assert len(server.requests) == 2


def test_a_refusal_of_one_request_rejects_its_pair() -> None:
    with ChatServer(lambda message, _: completion(YES) if "good" in message else failure(400, "bad text")) as server:
        scorer = scorer_for(server)
        scores = scorer.score_detailed([("a", "good"), ("a", "poison")])
        assert codes(scores) == {1: ("rejected", "refused_request")} and "bad text" in scores.errors[1].message
        assert list(scorer.score_detailed([("a", "poison")]).errors) == [0]


def test_a_pair_beyond_the_context_window_is_rejected() -> None:
    reply = failure(400, "This model's maximum context length is 10 tokens, you requested 20")
    with ChatServer(always(reply)) as server:
        assert codes(scorer_for(server).score_detailed([("a", "b")])) == {0: ("rejected", "pair_too_long")}


@PROVIDERS
@pytest.mark.parametrize(
    "reply",
    [
        *(failure(status, f"Incorrect API key provided: {KEY}") for status in (400, 401, 403, 404, 429, 500)),
        Reply(f"<html>{KEY}", 200),
        Reply(f"{{{KEY}", 401),
        completion(f"Your key is {KEY}"),
        completion(YES),
    ],
)
def test_a_key_is_shown_nowhere(
    provider: str,
    reply: Reply,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    root, stream = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(stream)
    root.addHandler(handler)
    caplog.set_level(logging.DEBUG)
    try:
        with ChatServer(always(reply)) as server:
            scorer = scorer_for(server, model=f"{provider}/tiny", retries=1)
            seen = [repr(scorer), str(vars(scorer)), str(scorer.identify("openai/tiny", api_key_env="JUDGE_KEY"))]
            try:
                seen.append(repr(scorer.score_detailed([("a", "b")]).errors))
                seen.append(repr(scorer.score_pairs([("a", "b")])))
            except VerificationError as error:
                chain: BaseException | None = error
                while chain is not None:
                    seen += [
                        repr(chain),
                        *traceback.TracebackException.from_exception(chain, capture_locals=True).format(),
                    ]
                    chain = chain.__cause__ or chain.__context__
    finally:
        root.removeHandler(handler)
    assert server.authorizations and set(server.authorizations) == {f"Bearer {KEY}"}
    output = capfd.readouterr()
    everything = "".join([*seen, stream.getvalue(), caplog.text, output.out, output.err])
    assert KEY not in everything.replace(repr(reply), "") and KEY[:12] not in "".join(seen).replace(repr(reply), "")
    assert output.out == ""


def test_a_scorer_whose_provider_needs_no_key_sends_none_of_ours() -> None:
    with ChatServer(always(completion(YES))) as server:
        scorer_for(server, model="hosted_vllm/tiny", api_key_env=None).score_pairs([("a", "b")])
    assert KEY not in str(server.authorizations)


def test_support_is_the_share_of_yes_over_all_spellings() -> None:
    probabilities = {"Yes": 0.5, " yes": 0.1, "YES\n": 0.05, "No": 0.2, " no": 0.05, "Yesterday": 0.04, "None": 0.01}
    with ChatServer(always(completion("Yes", probabilities))) as server:
        scorer = scorer_for(server, LlmLogprobScorer)
        assert scorer.score_pairs([("It {rained}.", "Wet {premise}")]) == [pytest.approx(0.65 / 0.9, abs=1e-12)]
    (request,) = server.requests
    wanted = {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
    assert {name: request[name] for name in wanted} == wanted
    assert request["messages"][1]["content"] == "Document: It {rained}.\nClaim: Wet {premise}"


@PROVIDERS
@pytest.mark.parametrize(
    ("reply", "support"),
    [
        (completion("No", {"No": 0.9, "Yes": 0.05}), 0.05 / 0.95),
        (completion("Yes", {"Yes": 1.0}), 1.0),
        (completion("No", {"No": 0.7}), 0.0),
        (completion("Maybe", {"Maybe": 0.9, "no": 0.03, "yes": 0.01}), 0.25),
        (completion("Yes"), 1.0),
        (completion(" no\n"), 0.0),
        (completion('{"supported": false, "confidence": 0.8}'), 0.2),
        (completion('{"supported": true, "confidence": 0.8}', {"{": 0.9}), 0.8),
        (completion("Maybe"), "no_logprobs"),
        (completion("Maybe", {"Maybe": 0.9}), "unreadable_answer"),
        (completion(""), "empty_answer"),
        (no_choices(), "empty_answer"),
    ],
)
def test_a_first_token_or_else_the_text(provider: str, reply: Reply, support: float | str) -> None:
    with ChatServer(always(reply)) as server:
        scores = scorer_for(server, LlmLogprobScorer, model=f"{provider}/tiny").score_detailed([("a", "b")])
    if isinstance(support, str):
        assert codes(scores) == {0: ("unscored", support)}
    else:
        assert not scores.errors and scores.values[0] == pytest.approx(support, abs=1e-12)


@pytest.mark.parametrize("logprob", ["NaN", "-9999.0", "1e-7"])
def test_odd_logprobs(logprob: str) -> None:
    body = json.dumps(completion("Yes", {"Yes": 0.5, "No": 0.25}).body).replace(str(math.log(0.5)), logprob)
    with ChatServer(always(Reply(body))) as server:
        scores = scorer_for(server, LlmLogprobScorer).score_detailed([("a", "b")])
    if logprob == "NaN":
        assert codes(scores) == {0: ("unscored", "unreadable_answer")}
    else:
        assert scores.values[0] == pytest.approx(0.0 if logprob == "-9999.0" else 0.8, abs=1e-12)


def test_words_of_ones_own() -> None:
    with ChatServer(always(completion("Oui", {"Oui": 0.6, "Non": 0.2, "Yes": 0.2}))) as server:
        settings: dict[str, Any] = {
            "yes_words": ["OUI"],
            "no_words": ["non", "nein"],
            "user_prompt": "{hypothesis}|{premise}",
        }
        assert scorer_for(server, LlmLogprobScorer, **settings).score_pairs([("a", "b")]) == [pytest.approx(0.75)]
    assert server.requests[0]["messages"][1]["content"] == "b|a"


@SCORERS
def test_is_a_grounding_scorer_that_a_round_can_use(kind: type[ChatScorer]) -> None:
    with ChatServer(then(failure(500), 0, completion("Yes" if kind is LlmLogprobScorer else YES))) as server:
        scorer = scorer_for(server, kind, revision="2026-01")
        assert isinstance(scorer, DetailedScorer) and isinstance(scorer, NLIScorer)
        scores = support_round(scorer, [Pair(row, "single", ("x",), "a", "b") for row in range(3)])
    assert (scorer.model, scorer.revision, scorer.dtype) == ("openai/tiny", "2026-01", "remote")
    assert scores.values.tolist() == [1.0 if kind is LlmLogprobScorer else 0.9] * 3 and scorer.calls == 1


@SCORERS
def test_identity_needs_no_endpoint_and_knows_the_prompt(kind: type[ChatScorer]) -> None:
    settings: dict[str, Any] = {"model": "openai/tiny", "api_base": "http://127.0.0.1:9/v1", "api_key_env": "JUDGE_KEY"}
    identity = identify(partial(kind, **settings))
    assert (identity["model"], identity["revision"]) == ("openai/tiny", "unpinned")
    assert identify(partial(kind, **settings, concurrency=2)) == identity
    assert identify(partial(kind, **settings, system_prompt="Judge."))["prompt_sha256"] != identity["prompt_sha256"]


@SCORERS
@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"retries": -1}, "retries"),
        ({"backoff": -1.0}, "backoff"),
        ({"timeout": 0.0}, "timeout"),
        ({"api_key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ({"api_base": f"http://user:{KEY}@host/v1"}, "api_key_env"),
        ({"model": "tiny"}, "openai/name"),
        ({"model": "nobody/tiny"}, "provider"),
    ],
)
def test_settings_that_cannot_work(
    kind: type[ChatScorer], settings: dict[str, Any], names: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for refused in (kind, kind.identify):
        with pytest.raises(ConfigurationError, match=names) as caught:
            refused(**{"model": "openai/tiny", **settings})
        assert "\n" not in str(caught.value) and KEY not in str(caught.value)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"yes_words": []},
        {"yes_words": ["no "]},
        {"no_words": [" "]},
        {"yes_words": "yes"},
        {"user_prompt": "{premise}"},
        {"user_prompt": "{premise} {hypothesis} {x}"},
        {"user_prompt": "{premise} {hypothesis} {"},
        {"user_prompt": "{premise} {hypothesis} {premise}"},
    ],
)
def test_questions_that_cannot_work(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="scorer"):
        LlmLogprobScorer.identify("openai/tiny", **settings)


@pytest.mark.parametrize(("name", "kind"), [("llm_judge", LlmJudgeScorer), ("llm_logprob", LlmLogprobScorer)])
def test_conf_has_every_setting_at_its_default(name: str, kind: Callable[..., ChatScorer]) -> None:
    path = Path(__file__).parents[2] / "conf" / "scorer" / f"{name}.yaml"
    factory = instantiate(OmegaConf.merge(OmegaConf.load(path), {"model": "hosted_vllm/tiny"}))
    refuse_unknown_arguments(factory, "scorer")
    assert identify(factory) == identify(partial(kind, model="hosted_vllm/tiny"))  # type: ignore[arg-type]
    own, from_conf = (
        {name: list(value) if isinstance(value, tuple) else value for name, value in vars(scorer).items()}
        for scorer in (kind(model="hosted_vllm/tiny"), factory())
    )
    assert set(factory.keywords) == {field for field in own if not field.startswith("_")} - {
        "calls",
        "retried",
        "prompt_tokens",
        "completion_tokens",
    }
    assert {field: from_conf[field] for field in factory.keywords} == {field: own[field] for field in factory.keywords}
    json.dumps(factory.keywords)


def test_litellm_is_imported_when_it_is_needed() -> None:
    code = "import sys, verifier.scorers.llm_judge, verifier.scorers.llm_logprob; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("key", ["sk-1\n", "sk-é"])
def test_a_key_that_no_header_can_carry_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", key)
    with pytest.raises(ConfigurationError, match="ODD_KEY holds characters"):
        LlmJudgeScorer("openai/tiny", api_base="http://127.0.0.1:9/v1", api_key_env="ODD_KEY")


@pytest.mark.parametrize("base", ["http://u:p@host/v1", "http://host/v1?api_key=sk-1"])
def test_an_endpoint_that_holds_a_secret_is_refused(base: str) -> None:
    with pytest.raises(ConfigurationError, match="would be written down") as caught:
        LlmJudgeScorer("openai/tiny", api_base=base)
    assert "sk-1" not in str(caught.value)
