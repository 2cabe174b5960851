"""A cascade: a cheap scorer ranks a premise's segments, an expensive one reads those that are kept."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from verifier.digests import sha256_json
from verifier.errors import ConfigurationError
from verifier.protocol import PairError, Part, Scores
from verifier.scorers.base import identify, raise_first, support_scores
from verifier.text.segments import segment_spans

Pairs = list[tuple[str, str]]

_RANKING = "cheap"
"""The member whose parts rank segments; they are no part of the support."""


def is_ranking(member: str | None) -> bool:
    """Whether a part's member, perhaps of a cascade within an ensemble, ranks and does not decide."""
    return member is not None and member.rpartition(".")[2] == _RANKING


class CascadeScorer:
    """Support of the ``keep`` segments of a premise that the cheap scorer finds best, from the expensive one.

    Segments (``verifier.text.segments``) are kept by the cheap scorer's support, the first on ties, and are read in
    the order of the premise, one a line. A premise of no more than ``keep`` segments is read as it is, unranked.

    Args:
        cheap, decisive: grounding or three-label scorers, or factories of them (``functools.partial``).
        keep: segments that the decisive scorer reads.

    Attributes:
        model: such as ``cascade(a, b, keep 3)``.
        revision: hexadecimal sha256 over both revisions.
        dtype: the decisive scorer's.
    """

    def __init__(self, cheap: Any, decisive: Any, keep: int = 3) -> None:
        _check(keep)
        self.cheap, self.decisive = (one() if isinstance(one, partial) else one for one in (cheap, decisive))
        self.keep = keep
        identity = _identity(
            [{"model": one.model, "revision": one.revision} for one in (self.cheap, self.decisive)], keep
        )
        self.model, self.revision = identity["model"], identity["revision"]
        self.dtype = str(getattr(self.decisive, "dtype", "unknown"))

    @classmethod
    def identify(cls, cheap: partial[Any], decisive: partial[Any], keep: int = 3) -> dict[str, str]:
        """Model and revision without loading either; ConfigurationError where the cascade could not be built."""
        _check(keep)
        return _identity([identify(cheap), identify(decisive)], keep)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The support of each pair, in [0, 1]; VerificationError where one has none."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``; the parts are the cheap scorer's segments (member ``cheap``), then the decisive's."""
        asked, ranked, errors = self._narrowed(list(pairs))
        answer = support_scores(self.decisive, asked)
        parts = {
            index: (*ranked.get(index, ()), *answer.parts.get(index, (_whole(answer, index),)))
            for index in range(len(pairs))
            if index in ranked or index in answer.parts
        }
        return replace(answer, errors={**answer.errors, **errors}, parts=parts)

    def _narrowed(self, pairs: Pairs) -> tuple[Pairs, dict[int, tuple[Part, ...]], dict[int, PairError]]:
        """The pairs with kept segments in place of long premises, the segments' scores, and the pairs that failed."""
        segments = {index: found for index, (text, _) in enumerate(pairs) if len(found := _segments(text)) > self.keep}
        questions = [(segment, pairs[index][1]) for index, found in segments.items() for segment in found]
        scores = support_scores(self.cheap, questions) if questions else None
        asked, ranked, errors, start = list(pairs), dict[int, tuple[Part, ...]](), dict[int, PairError](), 0
        for index, found in segments.items():
            assert scores is not None
            span = range(start, start := start + len(found))
            failed = next((scores.errors[position] for position in span if position in scores.errors), None)
            if failed is not None:
                errors[index] = failed
                continue
            support = scores.values[span.start : span.stop].tolist()
            best = sorted(sorted(range(len(found)), key=lambda n: (-support[n], n))[: self.keep])
            asked[index] = "\n".join(found[n] for n in best), pairs[index][1]
            ranked[index] = tuple(Part(_RANKING, n, len(found), value) for n, value in enumerate(support))
        return asked, ranked, errors


def _segments(text: str) -> list[str]:
    return [text[start:end] for start, end in segment_spans(text)]


def _whole(answer: Scores, index: int) -> Part:
    return Part(None, int(answer.window[index]), int(answer.windows[index]), float(answer.values[index]))


def _check(keep: int) -> None:
    if keep < 1:
        raise ConfigurationError(f"the cascade's keep is {keep}: at least 1 segment expected")


def _identity(identities: Sequence[dict[str, str]], keep: int) -> dict[str, str]:
    cheap, decisive = (identity["model"] for identity in identities)
    revision = sha256_json([[identity["model"], identity["revision"]] for identity in identities])
    return {"model": f"cascade({cheap}, {decisive}, keep {keep})", "revision": revision}
