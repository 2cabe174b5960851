"""The verify phase: ``work/`` streams through the actors into ``results/``, checkpointed by Ray Data.

A block of rows is read, verified, written and then marked in the checkpoint. A killed run loses the blocks that
were under way; its rerun reads only rows that are not marked. ``max_rows_lost`` bounds them.
"""

import logging
from functools import partial
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.data.checkpoint import CheckpointConfig

from verifier.pipeline.actor import MethodFactory, VerifyActor
from verifier.pipeline.backlog import limited_backlog
from verifier.pipeline.cluster import ActorPool
from verifier.pipeline.members import placed
from verifier.pipeline.meter import Meter
from verifier.pipeline.storage import open_filesystem

# Blocks of one actor that a kill can lose: one with the model, one next in line, two on their way to a file.
_BLOCKS_UNDER_WAY = 4


def blocks_under_way(max_rows_lost: int) -> tuple[int, int]:
    """How many blocks an actor may have under way, and their rows: together at most ``max_rows_lost``."""
    blocks = min(_BLOCKS_UNDER_WAY, max_rows_lost)
    return blocks, max_rows_lost // blocks


def run_verify(
    run_dir: str,
    scorer: partial[Any],
    method: MethodFactory,
    model: str,
    pool: ActorPool,
    max_rows_lost: int,
    meter: Meter,
) -> None:
    """Verify every claim of ``run_dir/work`` that is not in the checkpoint yet; see ``run_rows``.

    Raises ConfigurationError where the cluster has no room for the actors.
    """
    scorer, pool = placed(scorer, pool)
    arguments = (scorer, method, model, pool.batch_size, meter)
    meter.add(run_rows(run_dir, VerifyActor, arguments, pool, max_rows_lost))


def run_rows(
    run_dir: str, actor: type, arguments: tuple[Any, ...], pool: ActorPool, max_rows_lost: int
) -> dict[str, float]:
    """Give every row of ``run_dir/work`` that is not in the checkpoint yet to the actors; needs a connected Ray.

    Args:
        run_dir: the run directory, a path or URI.
        actor: called with a table of rows returns a table of as many, with their ``row_id``.
        arguments: what an actor is built from.
        pool: how many actors there are and what each takes up.
        max_rows_lost: rows that a kill may lose an actor.

    Returns for a meter the seconds that all writers together spent, and the bytes that did not fit into the object
    store. What an actor raises ends the run, with what is finished kept.
    """
    filesystem, root = open_filesystem(run_dir)
    blocks, block_rows = blocks_under_way(max_rows_lost)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.use_datasource_v2 = False  # it starts 32 processes that read footers, whatever there is to read
    context.raise_original_map_exception = True  # the actor's own error tells what failed
    context.checkpoint_config = CheckpointConfig(
        id_column="row_id",
        checkpoint_path=f"{root}/checkpoint",
        override_filesystem=filesystem,
        delete_checkpoint_on_success=False,  # else a rerun would write every row again
    )
    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setLevel(logging.CRITICAL)  # what is raised says it; the log file of Ray's session has it all
    try:
        with limited_backlog(context, blocks):
            rows = ray.data.read_parquet(f"{root}/work", filesystem=filesystem)
            done = rows.repartition(target_num_rows_per_block=block_rows).map_batches(
                actor,
                fn_constructor_args=arguments,
                batch_size=block_rows if pool.num_gpus else None,  # Ray wants a number where there are GPUs
                batch_format="pyarrow",
                zero_copy_batch=True,
                compute=ActorPoolStrategy(min_size=pool.min_size, max_size=pool.max_size),
                num_cpus=pool.num_cpus,
                num_gpus=pool.num_gpus,
            )
            done.write_parquet(f"{root}/results", filesystem=filesystem)
            stats = done.get_stats_summary()
            writes = [step.wall_time for step in stats.operators_stats if "Write" in step.operator_name]
            seconds = sum(spent.sum for spent in writes if spent is not None)
            return {"write_seconds": seconds, "spilled_bytes": stats.global_bytes_spilled}
    finally:
        context.checkpoint_config = None
