"""Decomposition by a chat model, against a real HTTP server on loopback."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from tests.scorers.chat_server import COMPLETION_TOKENS, Answer, ChatServer, Reply, completion, failure, no_choices
from verifier.decompose import DecomposeError, Decomposition, LlmDecomposer, SentenceDecomposer, parse_claims
from verifier.decompose.llm import ATTEMPTS, DECOMPOSE_PROMPT
from verifier.digests import sha256_text
from verifier.errors import ConfigurationError, VerificationError
from verifier.fusion.records import Draft, DraftClaim
from verifier.scorers.base import identify
from verifier.validation import refuse_unknown_arguments

KEY = "sk-not-for-any-eye-0123456789"
DRAFT = "Oslo is old [S1] and 🏰 big [S2, S3]."
CLAIMS = (DraftClaim("Oslo is old", (0, 16), ("S1",)), DraftClaim("Oslo is big", (0, len(DRAFT)), ("S2", "S3")))


def listed(*claims: DraftClaim) -> str:
    return json.dumps(
        [
            {"claimText": claim.text, "draftSpan": claim.draft_span, "citedMarkers": claim.cited_markers}
            for claim in claims
        ],
        ensure_ascii=False,
    )


GOOD = completion(listed(*CLAIMS))
BEYOND = listed(DraftClaim("Oslo is old", (0, len(DRAFT) + 1)))
EMPTY = listed(DraftClaim("Oslo is old", (4, 4)))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECOMPOSE_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def decomposer_for(server: ChatServer, **settings: Any) -> LlmDecomposer:
    quick = {"api_key_env": "DECOMPOSE_KEY", "backoff": 0.005, "backoff_max": 0.02, "retries": 2, "timeout": 5.0}
    return LlmDecomposer(**{"model": "openai/tiny", "api_base": server.url, **quick, **settings})


def decomposed(answer: Answer, *drafts: str) -> tuple[list[Decomposition], ChatServer]:
    with ChatServer(answer) as server:
        return decomposer_for(server).decompose([Draft(str(n), text) for n, text in enumerate(drafts)]), server


def in_turn(*replies: Reply) -> Answer:
    return lambda _, before: replies[min(before, len(replies) - 1)]


def test_a_good_answer() -> None:
    found, server = decomposed(in_turn(GOOD), DRAFT)
    assert found == [Decomposition(CLAIMS)]
    (request,) = server.requests
    assert (request["temperature"], request["max_tokens"]) == (0, 4096)
    assert [message["content"] for message in request["messages"]] == [DECOMPOSE_PROMPT, DRAFT]
    assert server.authorizations == [f"Bearer {KEY}"]


def test_a_draft_that_states_nothing_has_no_claims_and_a_blank_one_is_not_asked_for() -> None:
    found, server = decomposed(in_turn(completion("[]")), "Well then?", "", " \n")
    assert found == [Decomposition()] * 3 and len(server.requests) == 1


def test_distinct_drafts_are_asked_for_once_and_come_back_in_order() -> None:
    def answer(message: str, before: int) -> Reply:
        reply = completion(listed(DraftClaim(message, (0, len(message)))))
        return Reply(reply.body, delay=0.05 if message == "draft 0" else 0.0)

    drafts = [f"draft {number}" for number in range(6)]
    found, server = decomposed(answer, *drafts, "draft 2", "")
    assert [one.claims[0].text if one.claims else None for one in found] == [*drafts, "draft 2", None]
    assert len(server.requests) == 6 and server.most_in_flight > 1


BAD = [
    completion("Oslo is old."),
    completion(listed(*CLAIMS)[:-5], finish="length"),
    completion(f"Here you are: {listed(*CLAIMS)}"),
    completion('{"claims": []}'),
    completion(BEYOND),
    completion(EMPTY),
    completion(listed(CLAIMS[0], DraftClaim("x", (-1, 3)))),
    completion(None),
    no_choices(),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_is_asked_for_again(bad: Reply) -> None:
    for times in (1, 2):
        found, server = decomposed(in_turn(*[bad] * times, GOOD), DRAFT)
        assert found == [Decomposition(CLAIMS)] and len(server.requests) == times + 1
        assert all(request == server.requests[0] for request in server.requests)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (completion("I'm sorry, but I can't help with that."), "not the JSON list that was asked for (I'm sorry, but"),
        (completion(BEYOND), "draft span 0 to 37 in a draft of 36 characters"),
        (completion(EMPTY), "empty draft span 4 to 4"),
        (completion('[{"claimText": "x"}]'), "claim 1 of the answer is not as asked for: draftSpan: field required"),
        (completion("[", finish="length"), "decompose.max_tokens, 4096"),
        (completion(""), "the answer has no text"),
        (no_choices(), "no choices"),
    ],
)
def test_three_bad_answers_are_no_verification(bad: Reply, reason: str) -> None:
    assert len(DRAFT) == 36
    (found,), server = decomposed(in_turn(bad, bad, bad, GOOD), DRAFT)
    assert len(server.requests) == ATTEMPTS == 3
    assert found.claims == () and found.unavailable is not None
    assert found.unavailable.startswith("unavailable: ") and reason in found.unavailable
    assert "\n" not in found.unavailable


def test_one_draft_that_fails_leaves_the_others_alone() -> None:
    replies = {DRAFT: GOOD, "busy": failure(500), "odd": completion("?"), "refused": failure(400, "bad text")}
    found, server = decomposed(lambda message, _: replies[message], *replies)
    assert found[0] == Decomposition(CLAIMS)
    reasons = [str(one.unavailable) for one in found[1:]]
    assert [one.claims for one in found[1:]] == [()] * 3
    assert "status 500" in reasons[0] and "3 answers" in reasons[1] and "bad text" in reasons[2]
    assert all(reason.startswith("unavailable: ") for reason in reasons)
    # One good answer, a call with its two retries, three attempts, and a refusal that is not repeated.
    assert len(server.requests) == 1 + 3 + 3 + 1


def test_what_passes_is_no_attempt() -> None:
    with ChatServer(in_turn(failure(500), failure(429), completion("?"), failure(503), GOOD)) as server:
        decomposer = decomposer_for(server)
        assert decomposer.decompose([Draft("d", DRAFT)]) == [Decomposition(CLAIMS)]
    assert (decomposer.calls, decomposer.retried, decomposer.completion_tokens) == (5, 3, 2 * COMPLETION_TOKENS)


@pytest.mark.parametrize(
    ("status", "names"),
    [(401, "DECOMPOSE_KEY"), (403, "decompose.model"), (404, "decompose.api_base"), (400, "every other")],
)
def test_what_every_call_would_meet_stops_the_job(status: int, names: str) -> None:
    with pytest.raises(VerificationError, match=names) as caught:
        decomposed(in_turn(failure(status, f"Incorrect: {KEY}")), DRAFT, "Another one.")
    assert KEY not in str(caught.value) and "scorer" not in str(caught.value)


def test_a_key_in_an_answer_is_not_shown() -> None:
    (found,), _ = decomposed(in_turn(completion(f"Your key is {KEY}")), DRAFT)
    assert found.unavailable and KEY not in found.unavailable and "***" in found.unavailable


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}\n```", " \n```JSON\n{}```\n", "``` {} ```"])
def test_a_code_fence_may_stand_around_the_list(fence: str) -> None:
    assert parse_claims(fence.format(listed(*CLAIMS)), DRAFT) == CLAIMS


def claim(**changes: Any) -> str:
    return json.dumps([{"claimText": "x", "draftSpan": [0, 3], "citedMarkers": [], **changes}])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[",
        "null",
        "[1]",
        "[" * 100_000,
        f"{listed(*CLAIMS)}\nDone.",
        f"Sure!\n```json\n{listed(*CLAIMS)}\n```",
        f"```json\n{listed(*CLAIMS)}",
        claim(claimText=""),
        claim(claimText=" \n"),
        claim(claimText=None),
        claim(claimText="x").replace('"x"', '"\\ud800"'),
        claim(draftSpan=[0]),
        claim(draftSpan=[0, 1, 2]),
        claim(draftSpan=["0", "3"]),
        claim(draftSpan=[0, 3.5]),
        claim(draftSpan=[False, True]),
        claim(draftSpan=[3, 0]),
        claim(draftSpan=[3, 3]),
        claim(draftSpan=[-3, 3]),
        claim(draftSpan=[0, 10**30]),
        claim(draftSpan=[0, len(DRAFT) + 1]),
        claim(citedMarkers="S1"),
        claim(citedMarkers=[1]),
        claim(citedMarkers=None),
    ],
)
def test_anything_else_is_refused(answer: str) -> None:
    with pytest.raises(DecomposeError) as caught:
        parse_claims(answer, DRAFT)
    assert "\n" not in str(caught.value)


def test_ranges_count_code_points_and_may_overlap() -> None:
    whole = (0, len(DRAFT))
    assert len(DRAFT) < len(DRAFT.encode("utf-16-le")) // 2
    claims = (DraftClaim("a", whole), DraftClaim("b", whole, ("S1", "S7")), DraftClaim("c", (whole[1] - 1, whole[1])))
    assert parse_claims(listed(*claims), DRAFT) == claims
    assert parse_claims(claim(citedMarkers=["S1", " S1", "S2"]), DRAFT)[0].cited_markers == ("S1", "S2")


def test_identity_knows_the_prompt() -> None:
    factory = partial(LlmDecomposer, model="openai/tiny", api_key_env="DECOMPOSE_KEY")
    assert identify(factory) == {
        "model": "openai/tiny",
        "revision": "unpinned",
        "prompt_sha256": sha256_text(DECOMPOSE_PROMPT),
    }
    own = factory(system_prompt="Split.")
    assert own.prompt_hash == sha256_text("Split.") and factory().prompt_hash == sha256_text(DECOMPOSE_PROMPT)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"max_tokens": 0}, "decompose.max_tokens"),
        ({"model": "tiny"}, "decompose.model"),
        ({"api_key_env": "NOT_SET_ANYWHERE"}, "decompose.api_key_env"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], names: str) -> None:
    with pytest.raises(ConfigurationError, match=names):
        LlmDecomposer.identify(**{"model": "openai/tiny", **settings})


def test_conf_has_every_setting_at_its_default() -> None:
    conf = Path(__file__).parents[2] / "conf" / "decompose"
    factory = instantiate(OmegaConf.merge(OmegaConf.load(conf / "llm.yaml"), {"model": "hosted_vllm/tiny"}))
    refuse_unknown_arguments(factory, "decompose")
    own, from_conf = (vars(one) for one in (LlmDecomposer(model="hosted_vllm/tiny"), factory()))
    counts = {"calls", "retried", "prompt_tokens", "completion_tokens"}
    assert set(factory.keywords) == {name for name in own if not name.startswith("_")} - counts
    assert {name: from_conf[name] for name in factory.keywords} == {name: own[name] for name in factory.keywords}
    sentences = instantiate(OmegaConf.load(conf / "sentences.yaml"))
    assert identify(sentences) == SentenceDecomposer.identify() and isinstance(sentences(), SentenceDecomposer)
