"""Negated clauses and the tokens that a negation is about (SPEC, "Negated clause" and "Negation tokens")."""

import re
from collections.abc import Sequence
from functools import lru_cache

from verifier.text.words import CueTable, Occurrence

_CONTRACTIONS = "can't, isn't, aren't, wasn't, weren't, didn't, doesn't, don't, won't"
_NEGATORS = CueTable({1: f"not, never, no longer, cannot, {_CONTRACTIONS}"})
_CLAUSE_END = re.compile(r"[.;!?]")

_CORRECTIONS = CueTable(
    {
        1: f"no, not, never, neither, nor, without, cannot, {_CONTRACTIONS}, instead, rather than, switched from,"
        " replaced, incorrect, false"
    }
)

_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_STOP_WORDS = frozenset(
    "a an and app application are at be by currently did do does for from i in is it longer no not of on pipeline"
    " project service system team that the this to user was we were will with you".split()
)


def negators(folded: str, present: frozenset[str]) -> list[Occurrence]:
    """Where a folded text holds a negator, in order; ``present`` are its ``literals``."""
    return sorted(_NEGATORS.occurrences(folded, present))


def negated_clauses(text: str, negators: Sequence[Occurrence]) -> list[str]:
    """The clauses of ``text`` that hold one of its negators; a clause is a run without . ; ! or ?"""
    clauses = []
    border = 0  # where the last clause ended: no search goes back behind it
    for position, _, _ in negators:
        if position < border:
            continue
        start = max(text.rfind(mark, border, position) for mark in ".;!?") + 1 or border
        end = _CLAUSE_END.search(text, position)
        border = end.start() if end else len(text)
        clauses.append(text[start:border])
    return clauses


def has_correction_cue(folded: str, present: frozenset[str]) -> bool:
    """Whether a folded text negates or corrects something; ``present`` are its ``literals``."""
    return any(True for _ in _CORRECTIONS.occurrences(folded, present))


def negation_tokens(text: str) -> frozenset[str]:
    """The normalized content tokens of a text, which a negated clause must hold to refute it."""
    return frozenset(filter(None, map(_normalized, set(_TOKEN.findall(text)))))


@lru_cache(1 << 16)
def _normalized(token: str) -> str:
    token = token.lower()
    if token in _STOP_WORDS:
        return ""
    if token.endswith("ies") and len(token) > 4:
        return token[:-3] + "y"
    if token.endswith("s") and not token.endswith("ss") and len(token) > 3:
        return token[:-1]
    return token
