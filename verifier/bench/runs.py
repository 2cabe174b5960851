"""A verification run as ``jobs.verify`` drives it, without report and tracking."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from verifier.pipeline.cluster import ActorPool, Cluster
from verifier.pipeline.execution import Progress
from verifier.pipeline.meter import Totals
from verifier.pipeline.run import InputLimits, RunPlan, execute
from verifier.pipeline.sources import InputSpec
from verifier.records import VerificationPolicy
from verifier.scorers.base import identify
from verifier.search.groups import EvidenceGroups


def run_claims(
    output_dir: str,
    claims_file: str,
    scorer: partial[Any],
    actors: Mapping[str, Any],
    policy: Mapping[str, Any],
    max_rows_lost: int,
    progress: Progress | None = None,
    object_store_gb: float | None = None,
) -> dict[str, Any]:
    """Verify the claims of a JSON lines file on a Ray cluster of this machine; returns what ``run.json`` holds."""
    identity = identify(scorer)
    return execute(
        RunPlan(
            output_dir=output_dir,
            data=InputSpec("claims", claims_file),
            limits=InputLimits(),
            scorer=scorer,
            scorer_identity=identity,
            method=partial(EvidenceGroups),
            policy=VerificationPolicy(**{**policy, **identity}),
            cluster=Cluster(object_store_gb=object_store_gb),
            actors=ActorPool(**actors),
            max_rows_lost=max_rows_lost,
            config={},
        ),
        progress or _unheard,
    )


def _unheard(phase: str, done: int, total: int | None, counts: Totals) -> None:
    """Nothing is shown while a run is measured."""
