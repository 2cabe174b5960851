"""Targets: what models answer."""

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.registry import target
from tests.fuzz.strategies import fields, json_bytes, safe_text, text, value
from tests.fuzz.strategies import rows as spoilt
from verifier.decompose import DecomposeError, parse_claims
from verifier.protocol import PairError
from verifier.scorers.judgment import parse_judgment, read_judgment
from verifier.scorers.llm_judge import LlmJudgeScorer
from verifier.scorers.llm_logprob import LlmLogprobScorer

_judgment = fields(supported=st.booleans(), confidence=st.floats(0, 1))


def _told(raw: st.SearchStrategy[bytes]) -> st.SearchStrategy[str]:
    """An answer with something before and behind it, as models write."""
    around = st.sampled_from(["", "```json\n", "```", "Sure! ", "{", "}", "\0", "\ud800"])
    return st.tuples(around, raw, around).map(lambda three: three[0] + three[1].decode(errors="replace") + three[2])


@target(st.one_of(text, _told(json_bytes(spoilt(_judgment)))), share=4)
def judgments(raw: str) -> None:
    support, read = parse_judgment(raw), read_judgment(raw)
    assert 0 <= support <= 1 and read in (None, support)


_answered = st.lists(
    fields(claimText=safe_text, draftSpan=st.sampled_from([[0, 1], [0, 5], [3, 2]]), citedMarkers=st.just(["S1"])),
    max_size=2,
)


@target(st.tuples(st.one_of(text, _told(json_bytes(spoilt(_answered)))), safe_text), share=3)
def decomposed_answers(data: tuple[str, str]) -> None:
    answer, draft = data
    try:
        claims = parse_claims(answer, draft)
    except DecomposeError as error:
        str(error).encode()
        return
    for claim in claims:
        start, end = claim.draft_span
        assert 0 <= start < end <= len(draft) and claim.text.strip()
        "".join((claim.text, *claim.cited_markers)).encode()


_token = st.builds(
    lambda token, logprob, top: SimpleNamespace(token=token, logprob=logprob, top_logprobs=top),
    st.one_of(safe_text, st.sampled_from(["Yes", " no", "YES"])),
    st.floats(),
    st.lists(
        st.builds(
            lambda token, logprob: SimpleNamespace(token=token, logprob=logprob),
            st.one_of(safe_text, st.sampled_from(["Yes", " no", "YES"])),
            st.floats(),
        ),
        max_size=3,
    ),
)
_choice = st.builds(
    lambda content, reason, tokens: SimpleNamespace(
        message=SimpleNamespace(content=content),
        finish_reason=reason,
        logprobs=tokens if tokens is None else SimpleNamespace(content=tokens),
    ),
    st.one_of(st.none(), safe_text, value.map(repr).map(lambda told: told.encode(errors="replace").decode())),
    st.sampled_from(["stop", "length", None]),
    st.one_of(st.none(), st.lists(_token, max_size=2)),
)


@cache
def _scorers() -> list[Any]:
    settings = {"model": "hosted_vllm/m", "api_base": "http://127.0.0.1:9"}
    return [kind(**settings) for kind in (LlmJudgeScorer, LlmLogprobScorer)]


# The scorers are drawn with the choice: LiteLLM takes seconds to import, and drawing is not timed.
@target(st.tuples(st.builds(_scorers), _choice), share=2)
def chat_answers(data: tuple[list[Any], Any]) -> None:
    """A choice of a chat completion is a probability, or an error that can be written down."""
    scorers, choice = data
    for scorer in scorers:
        support = scorer._support(choice)
        if isinstance(support, PairError):
            support.message.encode()
        else:
            assert 0 <= support <= 1 and math.isfinite(support)
