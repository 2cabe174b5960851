"""Starting or joining a Ray cluster, and whether it is large enough."""

import logging
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import ray
from ray.exceptions import RayError

from verifier.errors import ConfigurationError
from verifier.exits import interrupt_on_sigterm, interrupted_after
from verifier.validation import built

# Beside the actors: one processor for reading and writing, one for Ray's filter of finished rows on a resume.
SPARE_CPUS = 2
_SMALLEST_LOCAL = 4
_KNOCK_SECONDS = 20
_ANSWER_SECONDS = 90
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
_MOST_CLAIMS = 1_000_000  # of a batch
_LEAST_SHARE = 0.0001  # of a processor or GPU that Ray can deal out


@dataclass(frozen=True)
class Cluster:
    """Where a run executes.

    Attributes:
        address: of a running cluster, ``auto`` or host:port; None starts one on this machine.
        num_cpus: logical processors of a cluster started here; None is this machine's, at least 4 (Ray's own
            tasks need slots beside the actors).
        num_gpus: logical GPUs of a cluster started here; None is what Ray finds.
        object_store_gb: shared memory of a cluster started here, in GB; None is Ray's default.
    """

    address: str | None = None
    num_cpus: int | None = None
    num_gpus: int | None = None
    object_store_gb: float | None = None

    def __post_init__(self) -> None:
        if self.address not in (None, "auto") and not _HOST_AND_PORT.fullmatch(self.address):
            raise ConfigurationError(
                f"cluster.address is {self.address!r}: auto or host:port of the head node expected (no ray:// address,"
                " through which no run goes), or null for a cluster of this machine"
            )
        for name in ("num_cpus", "object_store_gb"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"cluster.{name} is {value}: a number above 0 expected, or null")
        if self.num_gpus is not None and self.num_gpus < 0:
            raise ConfigurationError(f"cluster.num_gpus is {self.num_gpus}: a number from 0 on expected, or null")


@dataclass(frozen=True)
class ActorPool:
    """The model actors of a run.

    Attributes:
        min_size, max_size: actors, each with a model of its own.
        num_cpus, num_gpus: what each of them takes up (Ray resources, may be fractions).
        batch_size: claims whose rounds an actor scores together.
        members: where the members of an ensemble live: ``together`` in the actor, or ``separate``, each on an actor
            of its own that takes up ``num_cpus`` and ``num_gpus``; the actor that asks them then takes one CPU.
        autoscaled: whether the cluster adds nodes for actors that do not fit on those that are there.
    """

    min_size: int = 1
    max_size: int = 1
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    batch_size: int = 256
    members: Literal["together", "separate"] = "together"
    autoscaled: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size:
            raise ConfigurationError(
                f"actors.min_size is {self.min_size} and actors.max_size {self.max_size}: 1 <= min <= max expected"
            )
        if not 1 <= self.batch_size <= _MOST_CLAIMS:
            raise ConfigurationError(f"actors.batch_size is {self.batch_size}: 1 to {_MOST_CLAIMS:,} expected")
        for name, share in (("num_cpus", self.num_cpus), ("num_gpus", self.num_gpus)):
            if not 0 <= share < inf or 0 < share < _LEAST_SHARE:
                raise ConfigurationError(f"actors.{name} is {share:g}: 0 or a number from {_LEAST_SHARE} on expected")
        if self.num_gpus > 1 and self.num_gpus % 1:
            raise ConfigurationError(f"actors.num_gpus is {self.num_gpus:g}: above 1 it must be whole")


def placement(cluster: Mapping[str, Any], actors: Mapping[str, Any]) -> tuple[Cluster, ActorPool]:
    """Where a run executes, from fields of ``Cluster`` and ``ActorPool``; ConfigurationError where they do not fit."""
    where, pool = built(Cluster, cluster, "cluster"), built(ActorPool, actors, "actors")
    if pool.autoscaled and where.address is None:
        raise ConfigurationError(
            "actors.autoscaled is true, and a cluster that is started here adds no nodes: choose cluster=gpu_pool, or"
            " set actors.autoscaled=false"
        )
    return where, pool


@contextmanager
def connected(cluster: Cluster) -> Iterator[None]:
    """Run the block on the cluster; one that is started here ends with it, one that was running stays."""
    started_here = not ray.is_initialized()
    if started_here:
        _connect(cluster)
        interrupt_on_sigterm()
    try:
        yield
    finally:
        if started_here:
            ray.shutdown()


def _connect(cluster: Cluster) -> None:
    if cluster.address is not None:
        _join(cluster.address)
        return
    try:
        ray.init(
            address="local",
            num_cpus=cluster.num_cpus or max(os.cpu_count() or 1, _SMALLEST_LOCAL),
            num_gpus=cluster.num_gpus,
            object_store_memory=int(cluster.object_store_gb * 1e9) if cluster.object_store_gb else None,
            logging_level=logging.ERROR,
            log_to_driver=False,
            include_dashboard=False,
        )
    except (ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(f"Ray cannot start with what cluster= gives it: {reason}") from error


class _NoAnswer(BaseException):
    """No Exception: Ray catches those and asks again."""


def _join(address: str) -> None:
    host, _, port = address.rpartition(":")
    token = ""
    try:
        if host:  # where nobody listens, Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()
            token = "; if it wants a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        late = _NoAnswer(f"no answer of a head node in {_ANSWER_SECONDS:g} seconds")
        with interrupted_after(_ANSWER_SECONDS, late):  # Ray itself would ask for a quarter of an hour
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError, RayError, _NoAnswer) as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise ConfigurationError(f"no Ray cluster answers at {address}: {reason}{token}") from error


def check_room(pool: ActorPool, members: int = 0) -> None:
    """Raise ConfigurationError where the smallest pool, its actors with so many members, would wait for ever."""
    if pool.autoscaled:
        return
    cpus, gpus = capacity().values()
    models = pool.min_size * max(members, 1)
    needed = models * pool.num_cpus + (pool.min_size if members else 0) + SPARE_CPUS
    if needed > cpus:
        raise ConfigurationError(
            f"{models} actors of {pool.num_cpus:g} CPUs and {needed - models * pool.num_cpus:g} more for asking,"
            f" reading and writing need {needed:g} CPUs, the cluster has {cpus:g}:"
            " lower actors.min_size or actors.num_cpus"
        )
    if models * pool.num_gpus > gpus:
        raise ConfigurationError(
            f"{models} actors of {pool.num_gpus:g} GPUs are asked for, the cluster has {gpus:g}:"
            " lower actors.min_size or set actors.num_gpus=0"
        )
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    fitting = sum(_fitting(pool, node["Resources"]) for node in nodes if node["Alive"])
    if models > fitting:
        raise ConfigurationError(
            f"{models} actors of {pool.num_cpus:g} CPUs and {pool.num_gpus:g} GPUs are asked for, and the nodes of the"
            f" cluster, one by one, have room for {fitting:g}: lower actors.min_size, num_cpus or num_gpus"
        )


def capacity() -> dict[str, float]:
    """CPUs and GPUs of all nodes that the cluster has now."""
    there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return {name: there.get(name, 0.0) for name in ("CPU", "GPU")}


def _fitting(pool: ActorPool, there: Mapping[str, float]) -> float:
    """Actors that fit on one node."""
    asked = {"CPU": pool.num_cpus, "GPU": pool.num_gpus}
    return min((there.get(name, 0.0) // share for name, share in asked.items() if share), default=inf)
