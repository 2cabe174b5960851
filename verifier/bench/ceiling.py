"""A whole verification run on one actor beside a bare loop of the same model over the same pairs."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from verifier.bench.bare import bare_loop
from verifier.bench.corpora import demo_lines, mixed_claims, texts_of, write_lines
from verifier.bench.figures import Figure, Part
from verifier.bench.model import save_random_model
from verifier.bench.processes import in_fresh_process
from verifier.bench.runs import run_claims
from verifier.digests import sha256_text
from verifier.protocol import LABELS, Pair, run_plan
from verifier.records import VerificationPolicy
from verifier.results import scored_pairs
from verifier.schemas import claim_from_row
from verifier.scorers.base import score_round
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.search.groups import EvidenceGroups
from verifier.terminal import console

TITLE = "jobs.verify on one actor beside a bare loop of the model over the same pairs"


def measure_ceiling(
    scratch: str,
    policy: Mapping[str, Any],
    actors: Mapping[str, Any],
    max_rows_lost: int,
    rounds: int = 2,
    mixed: int = 130,
    demo: int | None = None,
    threads: int = 2,
    token_budget: int = 4096,
    shape: Mapping[str, int] | None = None,
    target: float | None = None,
    max_padding: float | None = None,
) -> Part:
    """Pairs per second of both sides, in turns, each in a process of its own.

    The run's clock goes from the start of its first batch to the end of its last, the loop's over the model's calls:
    the start of Ray, loading and writing the report are left out on both sides and told apart. On a busy machine
    wall time is as much the neighbours' as ours: the same share in CPU seconds, and the share of the run in which
    the model was at work, are told beside it.

    Args:
        scratch: folder for model, corpus and runs, which are deleted in the end.
        policy: fields of VerificationPolicy but model and revision.
        actors: fields of ActorPool but num_cpus.
        max_rows_lost: as in ``checkpoint``.
        rounds: how often both sides are measured.
        mixed: synthetic claims of mixed length.
        demo: rows of the demo corpus beside them (None: all).
        threads: CPUs of the actor, which Ray makes torch's threads in it, and threads of the loop.
        token_budget: tokens of a batch on both sides.
        shape: changes to the shape of DeBERTa-v3-xsmall.
        target: least share of the loop's speed.
        max_padding: most share of padding among the run's tokens.
    """
    Path(scratch).mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, Any]] = []
    loops: list[dict[str, float]] = []
    with TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        lines = [*demo_lines()[:demo], *mixed_claims(mixed)]
        claims = str(write_lines(folder / "claims.jsonl", lines))
        model = save_random_model(folder / "model", texts_of(lines), shape or {})
        scorer = partial(CrossEncoderScorer, model=model, device="cpu", token_budget=token_budget)
        pool = {**actors, "num_cpus": threads}
        for number in range(rounds):
            output = f"{folder}/run-{number}"
            runs.append(in_fresh_process(run_claims, output, claims, scorer, pool, policy, max_rows_lost))
            if number == 0:
                asked = asked_pairs(output, VerificationPolicy(**{**policy, **runs[0]["identity"]["scorer"]}))
                write_lines(folder / "pairs.jsonl", asked)
            loops.append(in_fresh_process(bare_loop, model, f"{folder}/pairs.jsonl", threads, token_budget))
            _say(number, runs[-1]["timings"], loops[-1])
    return _part(runs, loops, target, max_padding)


def asked_pairs(run_dir: str, policy: VerificationPolicy) -> list[tuple[str, str]]:
    """The distinct (premise, hypothesis) pairs that a run scored, read off by planning it again from its scores."""
    frame = scored_pairs(run_dir)
    keys = zip(frame["premise_sha256"], frame["hypothesis_sha256"], strict=True)
    recorded = _Replay(policy, dict(zip(keys, frame.select(LABELS).iter_rows(), strict=True)))
    rows = pq.read_table(f"{run_dir}/work").to_pylist()
    run_plan(EvidenceGroups(policy, recorded.revision).plan([claim_from_row(row) for row in rows]), recorded.round)
    return list(recorded.asked)


class _Replay:
    def __init__(self, policy: VerificationPolicy, known: Mapping[tuple[str, str], Sequence[float]]) -> None:
        self.model, self.revision, self.known = policy.model, policy.revision, known
        self.asked: dict[tuple[str, str], None] = {}

    def round(self, pairs: Sequence[Pair]) -> Any:
        return score_round(self, pairs)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Sequence[float]]:
        self.asked |= dict.fromkeys(pairs)
        return [self.known[sha256_text(premise), sha256_text(hypothesis)] for premise, hypothesis in pairs]


def _part(
    runs: Sequence[Mapping[str, Any]],
    loops: Sequence[Mapping[str, float]],
    target: float | None,
    max_padding: float | None,
) -> Part:
    pairs = loops[0]["pairs"]
    seconds = [run["timings"]["scoring_seconds"] for run in runs]
    cpu = [run["timings"]["cpu_seconds"] for run in runs]
    tokens = [(run["this_session"]["tokens_scored"], run["this_session"]["tokens_padded"]) for run in runs]
    figures = [
        Figure("share_of_ceiling", [loop["seconds"] / s for loop, s in zip(loops, seconds, strict=True)], "x", target),
        Figure("share_of_ceiling_cpu", [b["cpu_seconds"] / c for b, c in zip(loops, cpu, strict=True)], "x"),
        Figure("model_busy", [run["timings"]["model_seconds"] / s for run, s in zip(runs, seconds, strict=True)]),
        Figure("pairs_per_second/run", [pairs / s for s in seconds], "1/s"),
        Figure("pairs_per_second/bare_loop", [pairs / loop["seconds"] for loop in loops], "1/s"),
        Figure("padding/run", [padded / (scored + padded) for scored, padded in tokens], "", most=max_padding),
        Figure("padding/bare_loop", [loop["padding_share"] for loop in loops]),
        *(
            Figure(f"seconds/{name}", [run["timings"][f"{name}_seconds"] for run in runs], "s")
            for name in ("prepare", "load", "scoring", "cpu", "model", "plan")
        ),
        Figure("seconds/start_and_write", [_apart(run["timings"]) for run in runs], "s"),
        Figure("seconds/bare_loop", [loop["seconds"] for loop in loops], "s"),
        Figure("seconds/bare_loop_cpu", [loop["cpu_seconds"] for loop in loops], "s"),
        Figure("seconds/bare_loop_load", [loop["load_seconds"] for loop in loops], "s"),
    ]
    loop = loops[0]
    note = (
        f"{loop['pairs']:,} distinct pairs of {loop['tokens']:,} tokens (longest {loop['longest']:,}),"
        f" {loop['threads']} torch threads on both sides; start_and_write is Ray's start, reading, writing and its end,"
        " and is in neither speed"
    )
    details = {"runs": [{key: run[key] for key in ("timings", "counts", "this_session")} for run in runs]}
    return Part("ceiling", TITLE, figures, (note,), {**details, "bare_loops": list(loops)})


def _say(number: int, run: Mapping[str, float], loop: Mapping[str, float]) -> None:
    both = ((run["scoring_seconds"], run["cpu_seconds"]), (loop["seconds"], loop["cpu_seconds"]))
    told = [f"{seconds:.1f} s ({cpu:.1f} CPU s)" for seconds, cpu in both]
    console.print(f"ceiling, round {number + 1}: the run {told[0]}, the bare loop {told[1]}")


def _apart(timings: Mapping[str, float]) -> float:
    return timings["verify_seconds"] - timings["load_seconds"] - timings["scoring_seconds"]
