"""Deciding the cohort of an assay on Ray, with everything that a verification run keeps and resumes."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from verifier.assays.cases import CaseResult, cases_of_run
from verifier.assays.cohorts.writing import write_claims
from verifier.assays.methods import METHODS, Execute
from verifier.pipeline.cluster import ActorPool, Cluster
from verifier.pipeline.execution import Progress
from verifier.pipeline.run import InputLimits, RunPlan, execute
from verifier.pipeline.sources import InputSpec
from verifier.records import Claim


def on_ray(
    run_dir: str,
    scorer: partial[Any],
    identity: Mapping[str, str],
    cluster: Cluster,
    actors: ActorPool,
    max_rows_lost: int,
    config: Mapping[str, Any],
    progress: Progress,
) -> Execute:
    """Decides claims by a verification run in ``run_dir``, a local folder that keeps results and every score.

    Args are those of ``RunPlan``. Killed midway, the same call goes on where it stopped.
    """

    def decide(method: str, policy: Any, claims: Sequence[Claim]) -> list[CaseResult]:
        file = write_claims(claims, Path(run_dir) / "cohort.jsonl")
        plan = RunPlan(
            output_dir=run_dir,
            data=InputSpec("claims", str(file)),
            limits=InputLimits("fail"),
            scorer=scorer,
            scorer_identity=identity,
            method=partial(METHODS[method]),
            policy=policy,
            cluster=cluster,
            actors=actors,
            max_rows_lost=max_rows_lost,
            config=config,
        )
        execute(plan, progress)
        return cases_of_run(run_dir)

    return decide
