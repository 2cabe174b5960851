"""A run on answers: what it needs, the actor that checks them, and the job that it is."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import polars as pl
import pyarrow as pa

from verifier.answers.fused import FusedAnswers
from verifier.answers.receipted import ReceiptConfig, ReceiptedAnswers
from verifier.answers.records import Answer, CheckedAnswer
from verifier.answers.results import scan_answers
from verifier.answers.schemas import ANSWER_SCHEMA, answer_from_row, checked_row, checked_table
from verifier.assays.sealing import refuse_sealed_texts
from verifier.errors import ConfigurationError
from verifier.factuality.corpus import Ranking
from verifier.fusion.config import FusionConfig
from verifier.fusion.vectors import RememberingEmbedder
from verifier.pipeline.cluster import ActorPool, Cluster, check_room
from verifier.pipeline.execution import Job, Progress, check_written, execute_job, plain_settings, shown
from verifier.pipeline.meter import Meter, told_of_loading, watched
from verifier.pipeline.prepare import prepare
from verifier.pipeline.retrieval import CorpusSearcher, ShardedCorpus, build_index, check_shards
from verifier.pipeline.run import InputLimits, cleared_where_sealed
from verifier.pipeline.sources import InputSpec
from verifier.pipeline.storage import check_writable, held, open_filesystem
from verifier.pipeline.summary import PrepareSummary, load_summary
from verifier.pipeline.verify import run_rows
from verifier.results import scan_folder
from verifier.schemas import table_slices

_TEXTS_AN_ANSWER = 10  # to embed: a kill may cost as many passages as it costs texts of answers
_REMEMBERED = 20_000  # distinct texts whose vectors an actor keeps, about 1.5 KB each


class Checker(Protocol):
    """Checks a batch of answers."""

    def check(self, answers: Sequence[Answer]) -> list[CheckedAnswer]:
        """One result an answer, in order."""
        ...


@dataclass(frozen=True)
class Retrieval:
    """How a corpus is searched.

    Attributes:
        ranking: ``embeddings`` or ``bm25``, see ``verifier.factuality.corpus.Corpus``.
        shard_rows: passages of a shard, which is one actor's memory.
        index: folder of the corpus's vectors, a path or URI; one that is there already is used again.
    """

    index: str
    ranking: Ranking = "embeddings"
    shard_rows: int = 65_536

    def __post_init__(self) -> None:
        if not self.index.strip():
            raise ConfigurationError("retrieval.index is empty: name a folder or a URI")
        if self.shard_rows < 1:
            raise ConfigurationError(f"retrieval.shard_rows is {self.shard_rows}: at least 1 passage expected")


@dataclass(frozen=True)
class Model:
    """What is built in an actor, and what it will be: see ``identify`` of scorers."""

    factory: partial[Any]
    identity: Mapping[str, str]

    def settings(self) -> dict[str, Any]:
        """What of it could change a result."""
        return {**self.identity, "settings": plain_settings(self.factory)}


@dataclass(frozen=True)
class AnswersPlan:
    """Everything a run on answers needs, as plain values and factories.

    Attributes:
        output_dir: the run directory, a path or URI.
        data: the answers.
        corpus: the passages that receipts retrieve from; None for fusion.
        limits: what to do with bad input.
        method: ``fusion``, ``fusion+nli`` or ``receipts``.
        check: how verdicts come about, by method.
        decomposer, embedder, scorer: the models; without a scorer none is asked.
        retrieval: how the corpus is searched.
        cluster, actors: where it runs.
        max_rows_lost: answers that a kill may lose an actor.
        config: the resolved configuration, for the record.
        ledger: the one of jobs.assay whose sealed claims are not checked; None where there is none.
    """

    output_dir: str
    data: InputSpec
    corpus: InputSpec | None
    limits: InputLimits
    method: Literal["fusion", "fusion+nli", "receipts"]
    check: FusionConfig | ReceiptConfig
    decomposer: Model
    embedder: Model
    scorer: Model | None
    retrieval: Retrieval
    cluster: Cluster
    actors: ActorPool
    max_rows_lost: int
    config: Mapping[str, Any]
    ledger: str | None = None


class AnswersActor:
    """Checks tables of ANSWER_SCHEMA rows.

    Args:
        checker: builds the checker here, where it runs, and says model, revision and dtype of its scorer.
        method: how answers are checked.
        batch_size: answers that are checked together.
        meter: is told what was done, and what the models warned of while they were built.
    """

    def __init__(
        self, checker: Callable[[], tuple[Checker, Mapping[str, str]]], method: str, batch_size: int, meter: Meter
    ) -> None:
        with told_of_loading(meter):
            self._checker, self._scorer = checker()
        self._method = method
        self._batch_size = batch_size
        self._meter = meter

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row of CHECKED_SCHEMA a row of ``table``, in order."""
        batches = table_slices(table, self._batch_size)
        return pa.concat_tables([checked_table([]), *(self._checked(batch) for batch in batches)])

    def _checked(self, batch: pa.Table) -> pa.Table:
        started = time.perf_counter()
        rows = batch.to_pylist()
        checked = self._checker.check([answer_from_row(row) for row in rows])
        seconds = time.perf_counter() - started
        self._meter.add(
            {
                "rows": len(rows),
                "claims": sum(len(one.claims) for one in checked),
                "pairs": sum(len(one.pairs) for one in checked),
                "unscored": sum(one.error is not None for one in checked),
                "batch_seconds": seconds,
            }
        )
        return checked_table(
            checked_row(row, one, method=self._method, scorer=self._scorer, seconds=seconds / len(rows))
            for row, one in zip(rows, checked, strict=True)
        )


def execute_answers(plan: AnswersPlan, progress: Progress) -> dict[str, Any]:
    """Run the plan, or what is left of it, and return the content of ``run.json``; see ``execute_job``."""
    models = {"decomposer": plan.decomposer, "embedder": plan.embedder, "scorer": plan.scorer}
    settings = {name: model.settings() for name, model in models.items() if model is not None}
    identity: dict[str, Any] = {"method": plan.method, "check": _plain(plan.check), **settings}
    if plan.corpus is not None:
        identity["ranking"] = plan.retrieval.ranking
    job = Job(
        output_dir=plan.output_dir,
        unit="answers",
        identity=identity,
        model=(plan.scorer or plan.embedder).identity,
        config=plan.config,
        cluster=plan.cluster,
        prepare=partial(_prepared, plan),
        work=partial(_work, plan),
        index=partial(_index, plan),
        counts=partial(_counts, plan),
    )
    return execute_job(job, progress)


def _plain(check: FusionConfig | ReceiptConfig) -> dict[str, Any]:
    return check.model_dump(mode="json") if isinstance(check, FusionConfig) else dict(vars(check))


def _prepared(plan: AnswersPlan, progress: Progress) -> PrepareSummary:
    """The answers' summary, whose inputs name the files of the corpus too; SealedCohort for answers that are sealed."""

    def prepared(spec: InputSpec, folder: str) -> PrepareSummary:
        limits = plan.limits
        return prepare(
            spec,
            folder,
            on_error=limits.on_error,  # type: ignore[arg-type]
            max_rejects=limits.max_rejects,
            progress=lambda rows, rejects: progress(f"prepare {spec.form}", rows, None, {"rejects": rejects}),
        )

    answers = prepared(plan.data, plan.output_dir)
    if plan.ledger is not None:
        with cleared_where_sealed(plan.output_dir):
            refuse_sealed_texts(_texts(plan.output_dir), plan.ledger)
    if plan.corpus is None:
        return answers
    check_writable(plan.retrieval.index, "retrieval.index")
    with held(plan.retrieval.index):
        passages = prepared(plan.corpus, plan.retrieval.index)
    return replace(answers, inputs=answers.inputs + passages.inputs)


def _texts(run_dir: str) -> Iterator[tuple[str, list[str]]]:
    """The text of each answer, and of each claim that it names, with those of its spans."""
    rows = scan_folder(run_dir, "work", ANSWER_SCHEMA).select("answer", "claims", "spans").collect()
    for answer, claims, spans in rows.iter_rows():
        for text in (answer, *(claim["text"] for claim in claims or ())):
            yield text, [span["text"] for span in spans]


def _work(plan: AnswersPlan, meter: Meter) -> None:
    if plan.corpus is None:
        checker = partial(_fused, plan)
    else:
        corpus = ShardedCorpus(plan.retrieval.index, plan.retrieval.ranking, plan.retrieval.shard_rows)
        checker = partial(_receipted, plan, corpus)
    arguments = (checker, plan.method, plan.actors.batch_size, meter)
    run_rows(plan.output_dir, AnswersActor, arguments, plan.actors, plan.max_rows_lost)


def _index(plan: AnswersPlan, progress: Progress) -> None:
    """Embed what is not embedded yet of the corpus, where there is one."""
    check_room(plan.actors)
    if plan.corpus is None:
        return
    folder, shard_rows = plan.retrieval.index, plan.retrieval.shard_rows
    with held(folder):
        rows = _summary(folder).rows
        check_shards(rows, shard_rows)
        meter = Meter()
        with watched(meter, shown(progress, "embed", rows)):
            embedder = plan.embedder
            lost = plan.max_rows_lost * _TEXTS_AN_ANSWER
            build_index(folder, rows, embedder.factory, embedder.settings(), plan.actors, lost, meter)


def _summary(folder: str) -> PrepareSummary:
    summary = load_summary(*open_filesystem(folder))
    if summary is None:
        raise ConfigurationError(f"{folder} holds no prepared corpus any more: run again")
    return summary


def _fused(plan: AnswersPlan) -> tuple[Checker, Mapping[str, str]]:
    assert isinstance(plan.check, FusionConfig)
    scorer, identity = _scorer(plan)
    return FusedAnswers(plan.decomposer.factory(), _embedder(plan), plan.check, scorer), identity


def _receipted(plan: AnswersPlan, corpus: ShardedCorpus) -> tuple[Checker, Mapping[str, str]]:
    assert isinstance(plan.check, ReceiptConfig)
    scorer, identity = _scorer(plan)
    searcher = CorpusSearcher(corpus, _embedder(plan))
    return ReceiptedAnswers(plan.decomposer.factory(), searcher, plan.check, scorer), identity


def _embedder(plan: AnswersPlan) -> RememberingEmbedder:
    return RememberingEmbedder(plan.embedder.factory(), _REMEMBERED)


def _scorer(plan: AnswersPlan) -> tuple[Any, Mapping[str, str]]:
    if plan.scorer is None:
        return None, {}
    scorer = plan.scorer.factory()
    return scorer, {name: str(getattr(scorer, name, "unknown")) for name in ("model", "revision", "dtype")}


def _counts(plan: AnswersPlan, prepared: PrepareSummary) -> dict[str, Any]:
    rows = scan_answers(plan.output_dir)
    totals = rows.select(
        pl.len().alias("answers"),
        pl.col("row_id").n_unique().alias("distinct"),
        pl.col("claims").list.len().sum(),
        pl.col("pairs").list.len().sum(),
        pl.col("truncated").sum(),
        (pl.col("delivered") != pl.col("answer")).sum().alias("redacted"),
        pl.col("delivered").is_null().sum().alias("withheld"),
    )
    (found,) = totals.collect().to_dicts()
    check_written(plan.output_dir, found["answers"], found.pop("distinct"), prepared.rows, "answers")
    outcomes = dict(rows.group_by("outcome").len().collect().iter_rows())
    verdicts = (
        rows.select(pl.col("claims").explode().struct.field("verdict")).drop_nulls().group_by("verdict").len().collect()
    )
    counts = {**found, "rejects": prepared.rejects, **outcomes, "verdicts": dict(sorted(verdicts.iter_rows()))}
    if plan.corpus is not None:
        corpus = _summary(plan.retrieval.index)
        counts["corpus"] = {"passages": corpus.rows, "rejects": corpus.rejects}
    return {name: int(count) if isinstance(count, int) else count for name, count in counts.items()}
