"""A limit on blocks that were handed to the actors and are not yet marked in the checkpoint.

Ray's own limits are about memory: where writing is slower than verifying, verified rows would pile up in the object
store, and a kill would lose them all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ray.data import DataContext
from ray.data._internal.execution.backpressure_policy import (
    ENABLED_BACKPRESSURE_POLICIES,
    ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY,
)
from ray.data._internal.execution.backpressure_policy.backpressure_policy import BackpressurePolicy


class Backlog(BackpressurePolicy):
    """Gives the operator before the write no more than ``blocks`` blocks an actor that are not yet written."""

    def __init__(self, context: DataContext, topology: Any, resources: Any, *, blocks: int) -> None:
        super().__init__(context, topology, resources)
        self._blocks = blocks

    def can_add_input(self, op: Any) -> bool:
        """Whether the operator may take another block."""
        write = op.output_dependencies[0] if len(op.output_dependencies) == 1 else None
        if write is None or write.name != "Write":
            return True
        with_actors = op.metrics.num_inputs_received - op.metrics.num_task_inputs_processed
        unwritten = op.metrics.num_task_outputs_generated - write.metrics.num_task_inputs_processed
        return bool(with_actors + unwritten < self._blocks * max(1, op.get_actor_info().running))


@contextmanager
def limited_backlog(context: DataContext, blocks: int) -> Iterator[None]:
    """Datasets that are executed in the block keep to ``blocks`` blocks an actor."""
    policies = [*ENABLED_BACKPRESSURE_POLICIES, partial(Backlog, blocks=blocks)]
    context.set_config(ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY, policies)
    try:
        yield
    finally:
        context.remove_config(ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY)
