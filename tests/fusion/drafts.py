"""Drafts, plans and an embedder that needs no model, for the tests of the matcher."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from verifier.fusion import Draft, DraftClaim, PlanSpan

WORDS = "alpha beta gamma delta the of 5 0005 march 2026-03-05 1,000 1000.0 Σ東".split()
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


class WordEmbedder:
    """The mean of a fixed random vector a word; it keeps what it was asked."""

    model, revision = "words", "1"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Any:
        seeds = (int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") for word in text.split() or [""])
        vector = np.sum([np.random.default_rng(seed).normal(size=8) for seed in seeds], axis=0)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def draft_of(claims: Sequence[str | DraftClaim], spans: Sequence[str | PlanSpan], draft_id: str = "d") -> Draft:
    """A draft with its claims one after the other, a space between them."""
    made, text = [], ""
    for claim in claims:
        words = claim if isinstance(claim, str) else claim.text
        markers = () if isinstance(claim, str) else claim.cited_markers
        made.append(DraftClaim(words, (len(text), len(text) + len(words)), markers))
        text += words + " "
    plan = [PlanSpan(f"p{n}", span) if isinstance(span, str) else span for n, span in enumerate(spans, 1)]
    return Draft(draft_id, text, tuple(made), tuple(plan))


def cited(text: str, *markers: str) -> DraftClaim:
    """A claim whose place in the draft ``draft_of`` finds."""
    return DraftClaim(text, (0, 1), markers)


plan_spans = st.builds(
    PlanSpan,
    st.just(""),
    texts,
    st.lists(st.sampled_from(["S1", "[S2]", "x"]), max_size=2).map(tuple),
    st.sampled_from(["truth", "truth", "cache"]),
    st.sampled_from([(), (), ((0, 1),)]),
)


@st.composite
def drafts(draw: Any) -> Draft:
    """A draft of up to four claims and a plan of up to six spans."""
    claims = draw(
        st.lists(
            st.builds(cited, texts, st.sampled_from(["S1", "S2", "[S2]", "S9", " x "])) | texts.map(cited), max_size=4
        )
    )
    spans = draw(st.lists(plan_spans, max_size=6))
    named = [
        PlanSpan(f"p{n}", span.text, span.markers, span.span_class, span.masked) for n, span in enumerate(spans, 1)
    ]
    return draft_of(claims, named)
