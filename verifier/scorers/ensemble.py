"""Ensembles: the support of a pair out of what several scorers say of it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from verifier.digests import sha256_json
from verifier.errors import ConfigurationError
from verifier.protocol import Part, Scores
from verifier.scorers.base import AGGREGATIONS, identify, raise_first, support_scores
from verifier.validation import refuse_unknown_arguments

Members = Sequence[Any] | Mapping[str, Any]
Identity = dict[str, str]


class EnsembleScorer:
    """Several grounding scorers as one: the smallest (default), mean or largest of their supports.

    Args:
        members: two or more scorers, or factories of scorers (``functools.partial``), which are then built here. A
            list is named after the members' models, a repeated name getting ``#2``, ``#3`` …; a mapping has names.
            A three-label scorer counts with its entailment.
        aggregation: ``min``, ``mean`` or ``max``.
        concurrent: ask the members at once, in threads, for members that wait for an endpoint; else one by one.

    Attributes:
        members: name to scorer.
        model: such as ``ensemble(min: a, b)``.
        revision: hexadecimal sha256 over the members' models and revisions, in order.
        dtype: the members' dtypes, joined by ``+`` where they differ.

    Raises:
        ConfigurationError: fewer than two members, a member that is no scorer, or another aggregation.
    """

    def __init__(self, members: Members, aggregation: str = "min", concurrent: bool = False) -> None:
        check_members(members, aggregation)
        built = [member() if isinstance(member, partial) else member for member in _scorers(members)]
        identities = [_identity(member) for member in built]
        names = _names(members, identities)
        self.members = dict(zip(names, built, strict=True))
        self.model, self.revision = _model(names, aggregation), _revision(identities)
        self.dtype = "+".join(dict.fromkeys(str(getattr(member, "dtype", "unknown")) for member in built))
        self._aggregation, self._concurrent = aggregation, concurrent

    @classmethod
    def identify(cls, members: Members, aggregation: str = "min", concurrent: bool = False) -> Identity:
        """Model and revision, and what each member would be as ``<name>.<field>``, without loading any.

        Raises ConfigurationError where the ensemble could not be built.
        """
        check_members(members, aggregation)
        for name, member in members.items() if isinstance(members, Mapping) else enumerate(members):
            if isinstance(member, partial):
                refuse_unknown_arguments(member, f"scorer.members.{name}")
        identities = [_identity(member) for member in _scorers(members)]
        names = _names(members, identities)
        whole = {"model": _model(names, aggregation), "revision": _revision(identities)}
        of_members = zip(names, identities, strict=True)
        return whole | {f"{name}.{field}": value for name, identity in of_members for field, value in identity.items()}

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The support of each pair, in [0, 1]; a pair that a member cannot score raises VerificationError."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, with a part for every member and window, and errors pair by pair.

        ``windows`` and ``window`` are those of the member whose value stands, the first on ties; under ``mean`` the
        largest number of windows, and window 0. A pair that some member cannot score has the first such error.
        """
        answers = self._ask(list(pairs))
        errors = {
            index: replace(error, message=f"{name}: {error.message}")
            for name, answer in reversed(answers.items())
            for index, error in answer.errors.items()
        }
        result = Scores.whole(np.full(len(pairs), np.nan))
        parts: dict[int, tuple[Part, ...]] = {}
        for index in range(len(pairs)):
            if index in errors:
                continue
            stands = combine([_part(name, answer, index) for name, answer in answers.items()], self._aggregation)
            result.values[index], result.windows[index] = stands.support, stands.windows
            result.window[index] = stands.window
            parts[index] = tuple(part for name, answer in answers.items() for part in _parts(name, answer, index))
        result.truncated[:] = np.any([answer.truncated for answer in answers.values()], axis=0)
        return replace(result, errors=errors, parts=parts)

    def _ask(self, pairs: list[tuple[str, str]]) -> dict[str, Scores]:
        def ask(member: Any) -> Scores:
            return support_scores(member, pairs)

        if not self._concurrent:
            return {name: ask(member) for name, member in self.members.items()}
        with ThreadPoolExecutor(len(self.members)) as pool:
            return dict(zip(self.members, pool.map(ask, self.members.values()), strict=True))


def combine(parts: Sequence[Part], rule: str) -> Part:
    """One part out of several: its support by the rule, window and windows of the first that has this support.

    A mean is nobody's: it stands with the largest number of windows and window 0.
    """
    support = AGGREGATIONS[rule]([part.support for part in parts])
    if rule == "mean" and len(parts) > 1:
        return Part(None, 0, max(part.windows for part in parts), support)
    return next(part for part in parts if part.support == support)


def check_members(members: Members, aggregation: str) -> None:
    """Raise ConfigurationError for fewer than two members and for an unknown aggregation."""
    if not isinstance(members, Sequence | Mapping) or isinstance(members, str) or len(members) < 2:
        raise ConfigurationError("an ensemble needs at least two members, as a list or by name")
    if aggregation not in AGGREGATIONS:
        raise ConfigurationError(f"the aggregation {aggregation!r} is unknown: use {', '.join(AGGREGATIONS)}")


def _scorers(members: Members) -> list[Any]:
    return list(members.values() if isinstance(members, Mapping) else members)


def _identity(member: Any) -> Identity:
    if isinstance(member, partial):
        return identify(member)
    if not hasattr(member, "score_pairs") and not hasattr(member, "score"):
        raise ConfigurationError(f"an ensemble is made of scorers, and {type(member).__name__} is none")
    # The seed's scorers are anything with score_pairs; one without a name goes by its class.
    return {
        "model": str(getattr(member, "model", type(member).__name__)),
        "revision": str(getattr(member, "revision", "unknown")),
    }


def _names(members: Members, identities: Sequence[Identity]) -> list[str]:
    if isinstance(members, Mapping):
        return [str(name) for name in members]
    names: list[str] = []
    for identity in identities:
        name, number = identity["model"], 1
        while name in names:
            number += 1
            name = f"{identity['model']}#{number}"
        names.append(name)
    return names


def _model(names: Sequence[str], aggregation: str) -> str:
    return f"ensemble({aggregation}: {', '.join(names)})"


def _revision(identities: Sequence[Identity]) -> str:
    return sha256_json([[identity["model"], identity["revision"]] for identity in identities])


def _part(name: str, answer: Scores, index: int) -> Part:
    """The whole of what one member says of a pair."""
    return Part(name, int(answer.window[index]), int(answer.windows[index]), float(answer.values[index]))


def _parts(name: str, answer: Scores, index: int) -> tuple[Part, ...]:
    """What one member's support of a pair was aggregated from, under the member's name."""
    inner = answer.parts.get(index)
    if inner is None:
        return (_part(name, answer, index),)
    return tuple(replace(part, member=name if part.member is None else f"{name}.{part.member}") for part in inner)
