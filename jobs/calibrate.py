"""The calibration job: chooses a threshold under constraints and says honestly what it is worth."""

from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.assays.sealing import refuse_sealed
from verifier.calibration.calibrators import needs_texts
from verifier.calibration.inputs import Columns, Input, read_input
from verifier.calibration.publish import publish
from verifier.calibration.study import GuaranteeSpec, Spec, study
from verifier.errors import ConfigurationError, LimitError
from verifier.exits import run_job
from verifier.pipeline.storage import check_apart
from verifier.tracking import Tracking
from verifier.validation import built, refuse_unknown


def specs_of(config: dict[str, Any]) -> tuple[Input, Spec]:
    """What to read and how to calibrate; ConfigurationError where the configuration says neither."""
    refuse_unknown(config, "input calibrate guarantee ledger tracking output".split(), "")
    columns = built(Columns, config["input"]["columns"], "input.columns")
    source = built(Input, {**config["input"], "columns": columns}, "input")
    guarantee = built(GuaranteeSpec, config["guarantee"], "guarantee")
    spec = built(Spec, {**config["calibrate"], "guarantee": guarantee}, "calibrate")
    built(Tracking, config["tracking"], "tracking")
    if "://" in config["output"]["dir"]:
        raise ConfigurationError(f"output.dir is {config['output']['dir']}: a local folder expected")
    return source, spec


@hydra.main(version_base=None, config_path="pkg://conf", config_name="calibrate")
def main(cfg: DictConfig) -> None:
    """Read, calibrate, publish; what is not attainable ends the job with exit status 1."""
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    source, spec = specs_of(config)
    refuse_sealed([place for place in (source.run, source.table) if place], config["ledger"])
    data = read_input(source, needs_texts(spec.calibrator), config["ledger"])
    found = study(data, spec)
    check_apart(config["output"]["dir"], [source.run] if source.run else [])
    publish(found, data, config["output"]["dir"], config)
    if failures := found.failures():
        raise LimitError("; ".join(failures))


if __name__ == "__main__":
    run_job(main)
