"""The job for generated answers: finds claims, checks them on Ray, writes texts to deliver, traces or receipts."""

from typing import Any

import hydra
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import conf  # noqa: F401  (registers resolvers)
from verifier.answers.confirm import ConfirmedConfig
from verifier.answers.receipted import ReceiptConfig
from verifier.assays.sealing import refuse_sealed
from verifier.errors import ConfigurationError
from verifier.exits import run_job
from verifier.fusion.config import FusionConfig
from verifier.live import LiveRun
from verifier.pipeline.answers import AnswersPlan, Model, Retrieval, execute_answers
from verifier.pipeline.cluster import placement
from verifier.pipeline.run import Checkpointing, InputLimits, Output, check_limits
from verifier.pipeline.sources import InputSpec
from verifier.pipeline.storage import open_filesystem
from verifier.publish_answers import publish_answers
from verifier.scorers.base import check_form, identify
from verifier.terminal import shown_progress
from verifier.tracking import Tracking
from verifier.validation import built, refuse_unknown, refuse_unknown_arguments

_CHECKS: dict[str, Any] = {"fusion": FusionConfig, "fusion+nli": ConfirmedConfig, "receipts": ReceiptConfig}
_GROUPS = (
    "data decompose embedder scorer check retrieval cluster tracking input actors checkpoint ledger output".split()
)


def plan_of(cfg: DictConfig) -> AnswersPlan:
    """The run that a configuration describes; ConfigurationError where it describes none."""
    config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    refuse_unknown(config, _GROUPS, "")
    for kind, name in ((Output, "output"), (Tracking, "tracking")):
        built(kind, config[name], name)
    method = config["check"].pop("method", None)
    if method not in _CHECKS:
        raise ConfigurationError(f"check.method is {method!r}: choose check=fusion, check=fusion+nli or check=receipts")
    corpus = config["data"].pop("corpus", None)
    retrieval = built(Retrieval, config["retrieval"], "retrieval")
    if method == "receipts" and _same(retrieval.index, config["output"]["dir"]):
        raise ConfigurationError("retrieval.index is output.dir: the index needs a folder of its own")
    data = built(InputSpec, config["data"], "data")
    if data.form != "answers":
        raise ConfigurationError(f"jobs.answers reads answers, not {data.form}: choose data=answers or demo_answers")
    if method == "receipts" and corpus is None:
        raise ConfigurationError("check=receipts retrieves from a corpus: give data.corpus=…, one row a passage")
    cluster, actors = placement(config["cluster"], config["actors"])
    if actors.members == "separate":
        raise ConfigurationError("actors.members is separate: jobs.answers keeps its models together in each actor")
    return AnswersPlan(
        output_dir=config["output"]["dir"],
        data=data,
        corpus=InputSpec("corpus", corpus, None, data.format, data.ignore) if method == "receipts" else None,
        limits=built(InputLimits, config["input"], "input"),
        method=method,
        check=built(_CHECKS[method], config["check"], "check"),
        decomposer=_model(cfg, "decompose"),
        embedder=_model(cfg, "embedder"),
        scorer=_scorer(cfg, method),
        retrieval=retrieval,
        cluster=cluster,
        actors=actors,
        max_rows_lost=built(Checkpointing, config["checkpoint"], "checkpoint").max_rows_lost,
        config=OmegaConf.to_container(cfg, resolve=True),  # type: ignore[arg-type]
        ledger=config["ledger"],
    )


def _same(one: str, other: str) -> bool:
    return open_filesystem(one)[1].rstrip("/") == open_filesystem(other)[1].rstrip("/")


def _model(cfg: DictConfig, group: str) -> Model:
    factory = instantiate(cfg[group], _convert_="all")
    refuse_unknown_arguments(factory, group)
    return Model(factory, identify(factory))


def _scorer(cfg: DictConfig, method: str) -> Model | None:
    if method == "fusion":
        if cfg.get("scorer"):
            raise ConfigurationError("check=fusion asks no scorer: choose check=fusion+nli, or leave scorer= out")
        return None
    model = _model(cfg, "scorer")
    check_form(model.factory, "labels" if method == "fusion+nli" else "support", f"check={method}")
    return model


@hydra.main(version_base=None, config_path="pkg://conf", config_name="answers")
def main(cfg: DictConfig) -> None:
    """Run, report and publish."""
    plan = plan_of(cfg)
    refuse_sealed([*plan.data.paths, *(plan.corpus.paths if plan.corpus else ())], cfg.ledger)
    with LiveRun(plan.config["tracking"], plan.output_dir) as live:
        with shown_progress() as progress:
            run = execute_answers(plan, live.watching(progress))
        publish_answers(plan.output_dir, run, live)
    check_limits(run, plan.limits)


if __name__ == "__main__":
    run_job(main)
