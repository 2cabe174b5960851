"""The verification job: reads a corpus, verifies it on Ray, writes verdicts, rejects, scores and a report."""

from typing import Any

import hydra
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.assays.sealing import refuse_sealed
from verifier.exits import run_job
from verifier.grounding.answers import AnswerRules
from verifier.live import LiveRun
from verifier.pipeline.cluster import placement
from verifier.pipeline.dry import estimate
from verifier.pipeline.members import members_of
from verifier.pipeline.run import Checkpointing, Dry, InputLimits, Output, RunPlan, check_limits, execute
from verifier.pipeline.scale import SIZES, projections
from verifier.pipeline.sources import InputSpec
from verifier.publish import publish, write_answers
from verifier.scorers.base import check_form, identify
from verifier.search.exhaustive import SearchRange
from verifier.terminal import show_estimate, shown_progress
from verifier.tracking import Tracking
from verifier.validation import built, refuse_unknown, refuse_unknown_arguments


def plan_of(cfg: DictConfig) -> RunPlan:
    """The run that a configuration describes; ConfigurationError where it describes none."""
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    _refuse_unknown_names(config)
    max_rows_lost = built(Checkpointing, config["checkpoint"], "checkpoint").max_rows_lost
    data, limits = built(InputSpec, config["data"], "data"), built(InputLimits, config["input"], "input")
    cluster, actors = placement(config["cluster"], config["actors"])
    built(AnswerRules, config["answers"], "answers")
    scorer = instantiate(cfg.scorer, _convert_="all")
    refuse_unknown_arguments(scorer, "scorer")
    if actors.members == "separate":
        members_of(scorer)
    method = instantiate(cfg.method)
    built(SearchRange, config.get("search", {}), "search")
    check_form(scorer, method.func.asks, f"method={method.func.name}")
    unpinned = {"model": "unknown", "revision": "unknown"}
    built(method.func.policy_type, {**unpinned, **config["policy"]}, "policy")  # told before files are read
    identity = identify(scorer)
    pinned = {"model": identity["model"], "revision": config["scorer"].get("revision") or identity["revision"]}
    return RunPlan(
        output_dir=config["output"]["dir"],
        data=data,
        limits=limits,
        scorer=scorer,
        scorer_identity=identity,
        method=method,
        policy=built(method.func.policy_type, {**config["policy"], **pinned}, "policy"),
        cluster=cluster,
        actors=actors,
        max_rows_lost=max_rows_lost,
        config=config,
        ledger=config["ledger"],
    )


def _refuse_unknown_names(config: Any) -> None:
    groups = "data scorer policy method search cluster tracking input actors answers checkpoint ledger output run"
    refuse_unknown(config, groups.split(), "")
    for kind, name in ((Output, "output"), (Dry, "run"), (Tracking, "tracking")):
        built(kind, config[name], name)


@hydra.main(version_base=None, config_path="pkg://conf", config_name="verify")
def main(cfg: DictConfig) -> None:
    """Run, report and publish."""
    plan = plan_of(cfg)
    refuse_sealed(plan.data.paths, cfg.ledger)
    if cfg.run.dry:
        with shown_progress() as progress:
            planned = estimate(plan, progress)
        sizes = (planned.claims, *SIZES) if planned.claims else SIZES
        per_claim = planned.pairs / max(planned.claims, 1)
        show_estimate(planned, projections(per_claim, cfg.run.pairs_per_second, plan.max_rows_lost, sizes))
        return
    with LiveRun(plan.config["tracking"], plan.output_dir) as live:
        with shown_progress() as progress:
            run = execute(plan, live.watching(progress))
        publish(plan.output_dir, run, live)
    if plan.data.form == "cited":
        write_answers(plan.output_dir, plan.config["answers"]["strictness"])
    check_limits(run, plan.limits)


if __name__ == "__main__":
    run_job(main)
