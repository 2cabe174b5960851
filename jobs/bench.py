"""The benchmark: speed beside the published package and beside the models' own ceilings, and growth with the corpus."""

from typing import Any

import hydra
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.bench.publish import publish_bench
from verifier.errors import ConfigurationError
from verifier.exits import run_job

_GROUPS = ("parts", "wice", "scratch")


@hydra.main(version_base=None, config_path="pkg://conf", config_name="bench")
def main(cfg: DictConfig) -> None:
    """Measure the parts asked for, show them, keep them."""
    known = [str(name) for name in cfg.bench if name not in _GROUPS]
    unknown = [name for name in cfg.bench.parts if name not in known]
    if unknown:
        raise ConfigurationError(f"bench.parts names {unknown[0]!r}: known are {', '.join(known)}")
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    parts = [instantiate(cfg.bench[name], _convert_="all") for name in cfg.bench.parts]
    publish_bench(parts, config["output"]["dir"], config)


if __name__ == "__main__":
    run_job(main)
