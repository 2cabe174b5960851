"""Members of an ensemble on Ray actors of their own: each model has its own device, all are asked at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import ray

from verifier.errors import ConfigurationError
from verifier.pipeline.cluster import ActorPool, check_room
from verifier.protocol import Scores
from verifier.scorers.base import support_scores


@ray.remote(max_restarts=-1, max_task_retries=-1)
class _Member:
    def __init__(self, factory: partial[Any]) -> None:
        self._scorer = factory()

    def identity(self) -> dict[str, str]:
        return {name: str(getattr(self._scorer, name, "unknown")) for name in ("model", "revision", "dtype")}

    def score(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        return support_scores(self._scorer, list(pairs))


class RemoteScorer:
    """A grounding scorer that lives in an actor of its own, which is started again where it dies.

    Args:
        factory: builds the scorer over there.
        num_cpus, num_gpus: what the actor takes up.
    """

    def __init__(self, factory: partial[Any], num_cpus: float, num_gpus: float) -> None:
        self._actor: Any = _Member.options(num_cpus=num_cpus, num_gpus=num_gpus).remote(factory)  # type: ignore[attr-defined]
        identity = ray.get(self._actor.identity.remote())
        self.model, self.revision, self.dtype = (identity[name] for name in ("model", "revision", "dtype"))

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Support of (premise, hypothesis) pairs, errors pair by pair."""
        scores: Scores = ray.get(self._actor.score.remote(list(pairs)))
        return scores

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support of (premise, hypothesis) pairs; NaN where there is none."""
        values: list[float] = self.score_detailed(pairs).values.tolist()
        return values


def members_of(scorer: partial[Any]) -> dict[str, Any]:
    """The members of an ensemble's factory by name; ConfigurationError where it has none."""
    members = scorer.keywords.get("members")
    if not members:
        raise ConfigurationError("actors.members is separate, but the scorer has no members: use scorer=ensemble")
    return dict(members) if isinstance(members, Mapping) else {str(n): member for n, member in enumerate(members)}


def placed(scorer: partial[Any], pool: ActorPool) -> tuple[partial[Any], ActorPool]:
    """The factory and the pool with which a scorer lives where the pool says; ConfigurationError without room."""
    if pool.members == "together":
        check_room(pool)
        return scorer, pool
    check_room(pool, len(members_of(scorer)))
    return on_own_actors(scorer, pool), replace(pool, num_cpus=1, num_gpus=0)


def on_own_actors(scorer: partial[Any], pool: ActorPool) -> partial[Any]:
    """The factory of the same ensemble with every member on an actor of its own, all asked at once."""
    apart = {
        name: partial(RemoteScorer, member, pool.num_cpus, pool.num_gpus) for name, member in members_of(scorer).items()
    }
    return partial(scorer, members=apart, concurrent=True)
