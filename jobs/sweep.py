"""The sweep job: decides finished runs anew under many policies, without a model."""

from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.assays.sealing import refuse_sealed
from verifier.errors import ConfigurationError, LimitError
from verifier.exits import run_job
from verifier.sweep.job import SweepSpec, sweep
from verifier.sweep.publish import publish_sweep
from verifier.terminal import shown_progress
from verifier.tracking import Tracking
from verifier.validation import built, refuse_unknown


def spec_of(config: dict[str, Any]) -> SweepSpec:
    """What a configuration sweeps; ConfigurationError where it says nothing that can be swept."""
    refuse_unknown(config, "sweep ledger tracking output".split(), "")
    built(Tracking, config["tracking"], "tracking")
    if not config["output"]["dir"] or "://" in config["output"]["dir"]:
        raise ConfigurationError(f"output.dir is {config['output']['dir']!r}: a local folder expected")
    return built(SweepSpec, config["sweep"], "sweep")


@hydra.main(version_base=None, config_path="pkg://conf", config_name="sweep")
def main(cfg: DictConfig) -> None:
    """Sweep and publish; constraints that no setting keeps end the job with exit status 1."""
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    spec = spec_of(config)
    refuse_sealed([spec.runs] if isinstance(spec.runs, str) else spec.runs, config["ledger"])
    job = HydraConfig.get()
    if job.mode is RunMode.MULTIRUN:  # a folder for each of its jobs
        config["output"]["dir"] += f"/{job.job.num}"
    with shown_progress() as progress:
        found = sweep(spec, progress)
    publish_sweep(found, config["output"]["dir"], config)
    if found.constraints and not found.best.settings:
        raise LimitError(found.best.why or "no setting keeps the constraints")


if __name__ == "__main__":
    run_job(main)
