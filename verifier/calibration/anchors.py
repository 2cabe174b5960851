"""What the stack reads in a claim and its evidence: alignment, anchors and negation, each a share in [0, 1].

Every distinct text is scanned once; a pair costs set operations alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from verifier.calibration.selection import Floats
from verifier.text.features import TextFeatures
from verifier.text.segments import segment_spans

FEATURES = ("sentence_alignment", "evidence_alignment", "numeric_anchors", "capitalized_anchors", "negation_conflict")
_WORD = re.compile(r"\w[\w'’-]*")
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence: content tokens, values, all words, names (capitalized behind the first word), negated tokens."""

    tokens: frozenset[str]
    values: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    negated: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class _Text:
    sentences: tuple[_Sentence, ...]
    tokens: frozenset[str]
    values: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]


def anchor_features(pairs: Sequence[tuple[str, str]]) -> Floats:
    """The columns of ``FEATURES`` for (evidence, claim) pairs, shape (n, 5).

    - sentence_alignment: the largest share of the claim's content tokens (``verifier.text.negation``) in one sentence.
    - evidence_alignment: their share in the evidence as a whole.
    - numeric_anchors: the share of the claim's numbers, weekdays and months that the evidence has.
    - capitalized_anchors: the share of its capitalized words, the first of each sentence left out, among the words of
      the evidence.
    - negation_conflict: 1 where only one of the claim and its best aligned sentence (the first on ties) is negated,
      else 0; a sentence is negated by a negated clause with at least half of the claim's tokens.

    A share of nothing is 1.
    """
    texts = _read({text for pair in pairs for text in pair})
    rows = [_row(texts[claim], texts[evidence]) for evidence, claim in pairs]
    return np.array(rows, dtype=np.float64).reshape(len(pairs), len(FEATURES))


def _row(claim: _Text, evidence: _Text) -> tuple[float, ...]:
    shares = [_share(claim.tokens, sentence.tokens) for sentence in evidence.sentences] or [0.0]
    best = shares.index(max(shares))
    clauses = evidence.sentences[best].negated if evidence.sentences else ()
    negated = any(_share(claim.tokens, clause) >= 0.5 for clause in clauses)
    claim_negated = any(sentence.negated for sentence in claim.sentences)
    return (
        shares[best],
        _share(claim.tokens, evidence.tokens),
        _share(claim.values, evidence.values),
        _share(claim.names, evidence.words),
        float(negated != claim_negated),
    )


def _share(asked: frozenset[str], held: frozenset[str]) -> float:
    return len(asked & held) / len(asked) if asked else 1.0


def _read(texts: set[str]) -> dict[str, _Text]:
    cut = {text: [text[start:end] for start, end in segment_spans(text)] for text in texts}
    features = TextFeatures.of({sentence for sentences in cut.values() for sentence in sentences})
    read = {text: _sentence(one) for text, one in features.items()}
    return {text: _whole(tuple(read[sentence] for sentence in sentences)) for text, sentences in cut.items()}


def _sentence(text: TextFeatures) -> _Sentence:
    words = _WORD.findall(text.text)
    return _Sentence(
        text.tokens,
        text.numbers | text.weekdays | text.months,
        frozenset(word.casefold() for word in words),
        frozenset(word.casefold() for word in words[1:] if word[0].isupper()),
        tuple(text.negated_clause_tokens),
    )


def _whole(sentences: tuple[_Sentence, ...]) -> _Text:
    sets = ([getattr(one, name) for one in sentences] for name in ("tokens", "values", "words", "names"))
    return _Text(sentences, *(reduce(frozenset.union, parts, _NOTHING) for parts in sets))
