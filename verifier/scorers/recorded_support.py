"""Recorded support, replayed: windows and ensemble members put together anew, without a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from verifier.digests import sha256_text
from verifier.errors import ConfigurationError
from verifier.protocol import PairError, Part, Scores
from verifier.scorers.base import AGGREGATIONS, raise_first
from verifier.scorers.cascade import is_ranking
from verifier.scorers.ensemble import combine

Row = tuple[str, str, float] | tuple[str, str, float, str | None, int, int]
Key = tuple[str, str]  # sha256 of premise and hypothesis


@dataclass
class _Recorded:
    """What was recorded of one pair: its aggregated support and the parts that it came from, where known."""

    whole: Part | None = None
    parts: dict[tuple[str | None, int], Part] = field(default_factory=dict)
    truncated: bool = False


class RecordedSupportScorer:
    """A scorer of support that looks its answers up.

    ``rows`` are (premise, hypothesis, support), or (premise, hypothesis, support, member, window, windows) for one of
    the parts that a pair's support is aggregated from: ``window`` counts from 0, ``member`` is None outside an
    ensemble. The texts stand exactly as the model would be asked. Of a row given twice the first stands.

    Without any of the three choices the support of a pair is the one that was recorded for it. With one of them it is
    worked out anew from the parts; a pair without parts counts as the only one of its own.

    Args:
        rows: what was recorded.
        model: name of the model that the scores came from.
        revision: its revision.
        window_aggregation: ``max``, ``min`` or ``mean`` over the windows of a member (None beside another choice: max).
        aggregation: ``min``, ``mean`` or ``max`` over the members (None beside another choice: min).
        member: only this member, alone.

    Raises:
        ConfigurationError: an unknown aggregation, ``member`` beside ``aggregation``, a support outside [0, 1], or a
            pair of which only several parts were recorded, and no choice.
    """

    dtype = "recorded"

    def __init__(
        self,
        rows: Iterable[Row],
        model: str = "recorded",
        revision: str = "recorded",
        window_aggregation: str | None = None,
        aggregation: str | None = None,
        member: str | None = None,
    ) -> None:
        check_choices(window_aggregation, aggregation, member)
        self.model, self.revision = model, revision
        self._window_aggregation, self._aggregation, self._member = window_aggregation, aggregation, member
        self._anew = (window_aggregation, aggregation, member) != (None, None, None)
        self._recorded: dict[Key, _Recorded] = {}
        for row in rows:
            key = sha256_text(row[0]), sha256_text(row[1])
            part = Part(row[3], row[4], row[5], row[2]) if len(row) == 6 else Part(None, 0, 1, row[2])
            self._add(key, part, is_part=len(row) == 6)
        self._settle()

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The recorded supports; MissingScore names the digests of a pair that has none."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, with windows and parts; a pair that was not recorded is an error of its own."""
        result = Scores.whole(np.full(len(pairs), np.nan))
        errors: dict[int, PairError] = {}
        parts: dict[int, tuple[Part, ...]] = {}
        for index, (premise, hypothesis) in enumerate(pairs):
            key = sha256_text(premise), sha256_text(hypothesis)
            answer = self._answer(key)
            if isinstance(answer, str):
                errors[index] = _missing(key, answer)
                continue
            stands, used = answer
            result.values[index], result.windows[index] = stands.support, stands.windows
            result.window[index], result.truncated[index] = stands.window, self._recorded[key].truncated
            if len(used) > 1:
                parts[index] = used
        return Scores(result.values, result.windows, result.window, result.truncated, errors, parts)

    def _add(self, key: Key, part: Part, is_part: bool, truncated: bool = False) -> None:
        if not 0 <= part.support <= 1:
            raise ConfigurationError(f"a recorded support is {part.support}: a number in [0, 1] expected")
        recorded = self._recorded.setdefault(key, _Recorded())
        recorded.truncated |= truncated
        if is_part:
            recorded.parts.setdefault((part.member, part.window), part)
        elif recorded.whole is None:
            recorded.whole = part

    def _settle(self) -> None:
        """Raise ConfigurationError for a pair that has several parts only, where nothing says how they go together."""
        for key, recorded in self._recorded.items():
            if recorded.whole is None and len(recorded.parts) > 1 and not self._anew:
                raise ConfigurationError(
                    f"only parts were recorded of premise sha256 {key[0]}:"
                    " choose window_aggregation, aggregation or member"
                )

    def _answer(self, key: Key) -> tuple[Part, tuple[Part, ...]] | str:
        """What stands for a pair and the parts behind it, or why there is nothing."""
        recorded = self._recorded.get(key)
        if recorded is None:
            return "no score was recorded"
        parts = tuple(recorded.parts.values())
        if not self._anew:
            return recorded.whole or parts[0], parts
        by_member: dict[str | None, list[Part]] = {}
        for part in parts or ((recorded.whole,) if recorded.whole else ()):
            if not is_ranking(part.member):
                by_member.setdefault(part.member, []).append(part)
        if self._member is not None:
            if self._member not in by_member:
                return f"no score of the member {self._member} was recorded"
            by_member = {self._member: by_member[self._member]}
        supports = [_over_windows(list_of, self._window_aggregation) for list_of in by_member.values()]
        complete = [support for support in supports if support is not None]
        if len(complete) < len(supports):
            return "not every window was recorded"
        used = tuple(part for list_of in by_member.values() for part in list_of)
        return combine(complete, self._aggregation or "min"), used


def check_choices(window_aggregation: str | None, aggregation: str | None, member: str | None) -> None:
    """Raise ConfigurationError for choices that are unknown or cannot stand together."""
    for name, rule in (("window_aggregation", window_aggregation), ("aggregation", aggregation)):
        if rule is not None and rule not in AGGREGATIONS:
            raise ConfigurationError(f"scorer.{name} is {rule!r}: use {', '.join(AGGREGATIONS)}")
    if aggregation is not None and member is not None:
        raise ConfigurationError("scorer.member is one member alone: leave out scorer.aggregation")


def _over_windows(parts: list[Part], rule: str | None) -> Part | None:
    """A member's support out of its windows (None: max); None where some are missing."""
    if sorted(part.window for part in parts) == list(range(parts[0].windows)):
        return combine(sorted(parts, key=lambda part: part.window), rule or "max")
    # A member that keeps the deciding window alone: that is its support, but it cannot be worked out anew.
    return parts[0] if rule is None and len(parts) == 1 else None


def _missing(key: Key, reason: str) -> PairError:
    message = f"{reason} for premise sha256 {key[0]}, hypothesis sha256 {key[1]}"
    return PairError("unscored", "missing_score", message)
