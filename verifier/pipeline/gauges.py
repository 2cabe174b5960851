"""What an actor shows to Prometheus through Ray's metrics endpoint, while it works."""

from collections.abc import Mapping
from threading import Lock

import ray
from ray.util.metrics import Counter, Gauge, Histogram

_FILL = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]


class ActorGauges:
    """Metrics of one actor, each with the tag ``actor``; Ray puts ``ray_`` in front of their names.

    ``verifier_rows``, ``verifier_pairs`` and ``verifier_tokens`` only grow, so their rates are claims, pairs and tokens
    a second. ``verifier_batches_waiting`` is the queue in front of the model, ``verifier_batch_fill`` the share of
    tokens among what a round put through it, the rest being padding.
    """

    def __init__(self) -> None:
        tags = ("actor",)
        self._counters = {
            "rows": Counter("verifier_rows", "claims that are done", tags),
            "pairs": Counter("verifier_pairs", "pairs that are scored", tags),
            "tokens_scored": Counter("verifier_tokens", "tokens that the model has read", tags),
        }
        self._waiting = Gauge("verifier_batches_waiting", "batches that wait for the model", tags)
        self._fill = Histogram("verifier_batch_fill", "share of tokens beside padding in a round", _FILL, tags)
        actor = ray.get_runtime_context().get_actor_id() if ray.is_initialized() else None
        for metric in (*self._counters.values(), self._waiting, self._fill):
            metric.set_default_tags({"actor": actor or "none"})
        self._lock, self._queue = Lock(), 0

    def add(self, done: Mapping[str, float]) -> None:
        """Count what was done, by the names of ``Meter.add``."""
        for name, counter in self._counters.items():
            if done.get(name):
                counter.inc(done[name])
        if done.get("tokens_scored"):
            self._fill.observe(done["tokens_scored"] / (done["tokens_scored"] + done.get("tokens_padded", 0)))

    def queue(self, change: int) -> None:
        """A batch has come to the queue (1) or left it (-1)."""
        with self._lock:
            self._queue += change
            self._waiting.set(self._queue)
