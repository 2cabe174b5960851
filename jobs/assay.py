"""The assay job: registers, runs and reproduces assays, compares results, opens sealed cohorts."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.assays.actions import (
    asked_form,
    compare_action,
    register_action,
    reproduce_action,
    run_action,
    unlock_action,
)
from verifier.assays.registering import AssayForm, form_of_public
from verifier.assays.registration import Scorer
from verifier.errors import ConfigurationError
from verifier.exits import run_job
from verifier.pipeline.assays import on_ray
from verifier.pipeline.cluster import placement
from verifier.pipeline.execution import plain_settings
from verifier.pipeline.run import Checkpointing, Output
from verifier.scorers.base import check_form, identify
from verifier.scorers.sizing import token_counter
from verifier.terminal import shown_progress
from verifier.tracking import Tracking, open_run
from verifier.validation import built, refuse_unknown_arguments


def values(cfg: DictConfig, name: str) -> Any:
    """One group or field of the configuration, resolved; what an action does not use may stay unset."""
    node = OmegaConf.select(cfg, name, throw_on_missing=True)
    return OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if OmegaConf.is_config(node) else node


def scorer_of(cfg: DictConfig, asks: str, method: str) -> tuple[Any, Scorer]:
    """The scorer's factory, and what it is."""
    factory = instantiate(cfg.scorer, _convert_="all")
    refuse_unknown_arguments(factory, "scorer")
    check_form(factory, asks, f"method={method}")
    identity = identify(factory)
    model, revision = identity.pop("model"), identity.pop("revision")
    return factory, Scorer(model=model, revision=revision, identity=identity, settings=plain_settings(factory))


def _register(cfg: DictConfig) -> None:
    method = instantiate(cfg.method).func
    _, scorer = scorer_of(cfg, method.asks, method.name)
    register_action(_form(cfg, method.name, scorer), values(cfg, "registration"), cfg.ledger)


def _form(cfg: DictConfig, method: str, scorer: Scorer) -> AssayForm:
    if cfg.public.registration is not None:
        claims = cfg.public.claims
        return form_of_public(Path(cfg.public.registration), scorer, Path(claims) if claims else None)
    requested = values(cfg, "scorer").get("revision") or scorer.revision
    policy = {**values(cfg, "policy"), "model": scorer.model, "revision": requested}
    return asked_form({**values(cfg, "register"), "method": method, "policy": policy, "scorer": scorer.model_dump()})


def _run(cfg: DictConfig) -> None:
    method = instantiate(cfg.method).func
    factory, scorer = scorer_of(cfg, method.asks, method.name)
    cluster, actors = placement(values(cfg, "cluster"), values(cfg, "actors"))
    with shown_progress() as progress:
        decide = on_ray(
            f"{cfg.output.dir}/run",
            factory,
            identify(factory),
            cluster,
            actors,
            built(Checkpointing, values(cfg, "checkpoint"), "checkpoint").max_rows_lost,
            {name: values(cfg, name) for name in ("scorer", "cluster", "actors", "checkpoint")},
            progress,
        )
        registration, paths = values(cfg, "registration"), values(cfg, "paths")
        counter = token_counter(factory)
        run_action(registration, paths, cfg.ledger, cfg.output.dir, scorer, decide, _tracked(cfg), counter)


def _reproduce(cfg: DictConfig) -> None:
    reproduce_action(values(cfg, "assay") if cfg.get("assay") else None, cfg.ledger, cfg.output.dir, _tracked(cfg))


def _compare(cfg: DictConfig) -> None:
    asked = values(cfg, "compare")
    compare_action(asked["first"], asked["second"], asked["tolerance"], cfg.ledger, cfg.output.dir)


def _unlock(cfg: DictConfig) -> None:
    asked = values(cfg, "unlock")
    registration, paths = values(cfg, "registration"), values(cfg, "paths")
    unlock_action(registration, asked["statuses"], asked["chosen"], paths, cfg.ledger)


def _tracked(cfg: DictConfig) -> Any:
    return partial(_track, values(cfg, "tracking"), cfg.output.dir)


def _track(
    tracking: Mapping[str, Any],
    folder: str,
    name: str,
    decided_by: Mapping[str, Any],
    figures: Mapping[str, float],
    file: Path,
) -> str:
    run_name = tracking["run_name"] or name
    with open_run(tracking["uri"], tracking["experiment"], run_name, folder, enabled=tracking["enabled"]) as tracker:
        tracker.log_tags({"assay": name})
        tracker.log_params(decided_by)
        tracker.log_metrics(figures)
        tracker.log_artifact(file)
        return tracker.location


def _refuse_registered(action: str, overrides: Sequence[str]) -> None:
    """Raise ConfigurationError where a run is told what its registration says."""
    for override in overrides if action == "run" else ():
        name = override.lstrip("+~").partition("=")[0]
        if name.partition(".")[0] in _REGISTERED:
            raise ConfigurationError(
                f"{override} is given with action=run, which takes {', '.join(_REGISTERED)} from the registration:"
                " leave it out, or register another assay"
            )


_REGISTERED = ("policy", "register", "public")
_ACTIONS = {"register": _register, "run": _run, "reproduce": _reproduce, "compare": _compare, "unlock": _unlock}


@hydra.main(version_base=None, config_path="pkg://conf", config_name="assay")
def main(cfg: DictConfig) -> None:
    """Do one action."""
    action = None if OmegaConf.is_missing(cfg, "action") else cfg.action
    if action not in _ACTIONS:
        raise ConfigurationError(f"action is {action!r}: use {', '.join(_ACTIONS)}")
    _refuse_registered(action, HydraConfig.get().overrides.task)
    built(Output, values(cfg, "output"), "output")
    built(Tracking, values(cfg, "tracking"), "tracking")
    _ACTIONS[action](cfg)


if __name__ == "__main__":
    run_job(main)
