"""The claims of an answer, and whether evidence corroborates one by its words and their negation.

The rules are those of shared/seeds/factuality-receipts.txt; SPEC.md gives what it leaves out.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

NEGATION_REACH = 4  # words after a negator that it negates
STOP_WORDS = frozenset(
    "a an the is are was were be been being of to in on at by for with and or but it its this that as from into over"
    " under near".split()
)
NEGATORS = frozenset(
    "no not never none nobody nothing nowhere neither nor cannot without lacks lacking fails unable".split()
)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s++|\n")
_WORD = re.compile("[a-z0-9]+")


class Corroboration(StrEnum):
    """What one piece of evidence does to a claim; unverified means that it says nothing either way."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNVERIFIED = "unverified"


def sentence_claims(answer: str) -> list[str]:
    """The sentences of ``answer`` that have at least two words, stripped, in order.

    Sentences end at white space after . ! or ? and at line ends; words are what white space separates.

    >>> sentence_claims("Sure! Paris is in France.\\nIt has 2.1 million people")
    ['Paris is in France.', 'It has 2.1 million people']
    """
    return [sentence for sentence in _sentences(answer) if len(sentence.split(maxsplit=2)) >= 2]


def corroborate(evidence: str, claim: str) -> Corroboration:
    """Whether ``evidence`` supports or contradicts ``claim``, by shared words and their negation: a heuristic.

    The evidence is about the claim when it holds at least half of the claim's words other than stop words. Then,
    among the content words that both have, one that is negated in only one of the two contradicts the claim; if
    there is none, the claim is supported. Evidence about something else, and evidence that shares no content
    word, leaves the claim unverified. A negator negates the next four words of its sentence, up to another
    negator; a contraction with "n't" is one.

    >>> str(corroborate("The drug cures cancer in mice.", "The drug cures cancer."))
    'supported'
    >>> str(corroborate("The drug cures no cancer and does not work.", "The drug cures cancer."))
    'contradicted'
    >>> str(corroborate("Paris is the capital of France.", "The drug cures cancer."))
    'unverified'
    """
    held, asked = _read(evidence), _read(claim)
    shared = asked.content & held.content
    if not shared or 2 * len(asked.spelled & held.spelled) < len(asked.spelled):
        return Corroboration.UNVERIFIED
    return Corroboration.CONTRADICTED if shared & (asked.negated ^ held.negated) else Corroboration.SUPPORTED


class _Reading(NamedTuple):
    """The distinct words of a text, stop words left out.

    Attributes:
        spelled: as spelled, negators among them: "isn't" is isn and t.
        content: with "n't" read as not, negators left out.
        negated: those of ``content`` that some negator reaches.
    """

    spelled: frozenset[str]
    content: frozenset[str]
    negated: frozenset[str]


@lru_cache(2048)  # a passage that many claims retrieve is read once
def _read(text: str) -> _Reading:
    low = text.lower()
    sentences = [_WORD.findall(sentence.replace("n't", " not")) for sentence in _sentences(low)]
    content = {word for words in sentences for word in words} - STOP_WORDS - NEGATORS
    negated = {word for words in sentences for word in _negated(words)}
    return _Reading(frozenset(_WORD.findall(low)) - STOP_WORDS, frozenset(content), frozenset(negated & content))


def _negated(words: Sequence[str]) -> Iterator[str]:
    reach = 0
    for word in words:
        if word in NEGATORS:
            reach = NEGATION_REACH
        elif reach:
            reach -= 1
            yield word


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(text)]
