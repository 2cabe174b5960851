"""The sweep job: decides finished runs anew under many policies, from the scores that they recorded."""

from functools import partial
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.assays.sealing import refuse_sealed
from verifier.errors import ConfigurationError, LimitError
from verifier.exits import run_job
from verifier.pipeline.cluster import placement
from verifier.pipeline.execution import Progress
from verifier.pipeline.missing import MissingPlan, score_missing
from verifier.pipeline.run import Checkpointing
from verifier.pipeline.storage import check_apart
from verifier.scorers.base import identify
from verifier.sweep.job import ScoreMissing, SweepSpec, sweep
from verifier.sweep.publish import publish_sweep
from verifier.terminal import shown_progress
from verifier.tracking import Tracking
from verifier.validation import built, refuse_unknown, refuse_unknown_arguments


def spec_of(config: dict[str, Any]) -> SweepSpec:
    """What a configuration sweeps; ConfigurationError where it says nothing that can be swept."""
    refuse_unknown(config, "sweep scorer cluster actors checkpoint ledger tracking output".split(), "")
    built(Tracking, config["tracking"], "tracking")
    if not config["output"]["dir"] or "://" in config["output"]["dir"]:
        raise ConfigurationError(f"output.dir is {config['output']['dir']!r}: a local folder expected")
    return built(SweepSpec, config["sweep"], "sweep")


def missing_scorer(config: dict[str, Any], progress: Progress) -> ScoreMissing:
    """What scores missing pairs; ConfigurationError where no scorer is given, or one that cannot be built."""
    if not config.get("scorer"):
        raise ConfigurationError("sweep.score_missing needs the scorer that the run was made with: give scorer=…")
    scorer = instantiate(config["scorer"], _convert_="all")
    refuse_unknown_arguments(scorer, "scorer")
    cluster, actors = placement(config["cluster"], config["actors"])
    plan = MissingPlan(
        output_dir=f"{config['output']['dir']}/missing",
        scorer=scorer,
        scorer_identity=identify(scorer),
        cluster=cluster,
        actors=actors,
        max_rows_lost=built(Checkpointing, config["checkpoint"], "checkpoint").max_rows_lost,
        config=config,
    )
    return partial(score_missing, plan, progress=progress)


@hydra.main(version_base=None, config_path="pkg://conf", config_name="sweep")
def main(cfg: DictConfig) -> None:
    """Sweep and publish; constraints that no setting keeps end the job with exit status 1."""
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    spec = spec_of(config)
    refuse_sealed(spec.run_dirs, config["ledger"])
    job = HydraConfig.get()
    if job.mode is RunMode.MULTIRUN:  # a folder for each of its jobs
        config["output"]["dir"] += f"/{job.job.num}"
    check_apart(config["output"]["dir"], spec.run_dirs)
    with shown_progress() as progress:
        found = sweep(spec, progress, missing_scorer(config, progress) if spec.score_missing else None)
    publish_sweep(found, config["output"]["dir"], config)
    if found.constraints and not found.best.settings:
        raise LimitError(found.best.why or "no setting keeps the constraints")


if __name__ == "__main__":
    run_job(main)
