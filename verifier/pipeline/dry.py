"""What a run would cost: the corpus is read and the first round planned and tokenized; nothing is scored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from math import comb
from typing import Any

import numpy as np
import pyarrow.dataset as pads
from numpy.typing import NDArray

from verifier.pipeline.execution import Progress
from verifier.pipeline.run import RunPlan, prepared_input
from verifier.pipeline.storage import check_writable, held, open_filesystem
from verifier.protocol import Pair
from verifier.records import Claim
from verifier.schemas import claim_from_row

_BATCH = 512
_NESTED = ("base", "decisive", "cosine", "labels")  # arguments of a scorer that build the models it asks


@dataclass
class ModelCost:
    """What one model of the scorer would be asked in the first round; one of labels, the longest passage of each claim.

    Attributes:
        name: the member of an ensemble, or the scorer.
        tokens: of each input of the model (a window is an input).
        windowed: pairs that are cut into more than one window.
        failed: pairs that do not fit at all and would be rejected.
        flops_per_token: see ``verifier.scorers.sizing.forward_flops``; None where the model is elsewhere.
    """

    name: str
    tokens: list[NDArray[np.int64]] = field(default_factory=list)
    windowed: int = 0
    failed: int = 0
    flops_per_token: float | None = None

    def figures(self) -> dict[str, float]:
        """Inputs, tokens in all, at the median, at 95 % and at most, windowed and failed pairs, FLOPs."""
        tokens = np.concatenate(self.tokens) if self.tokens else np.zeros(0, np.int64)
        p50, p95, most = np.percentile(tokens, (50, 95, 100)) if len(tokens) else (0, 0, 0)
        figures = {"inputs": len(tokens), "tokens": float(tokens.sum()), "p50": p50, "p95": p95, "max": most}
        figures |= {"windowed": self.windowed, "rejected": self.failed}
        if self.flops_per_token is not None:
            figures["flops"] = self.flops_per_token * float(tokens.sum())
        return figures


@dataclass(frozen=True)
class Estimate:
    """What a run would do: counts of rows, then of pairs, then of tokens by model (``ModelCost.figures``).

    ``pairs`` and ``distinct`` are those of the first round; ``later`` is the most that further rounds could ask.
    """

    claims: int
    rejects: int
    pairs: int
    distinct: int
    later: int
    models: Mapping[str, Mapping[str, float]]


def estimate(plan: RunPlan, progress: Progress) -> Estimate:
    """Read the input and plan and tokenize the first round of every claim, batch by batch."""
    check_writable(plan.output_dir)
    with held(plan.output_dir):
        prepared = prepared_input(plan, progress)
    method = plan.method(plan.policy, "unresolved")
    sizers = {name: factory.func.sizer(**factory.keywords) for name, factory in _models(plan.scorer).items()}  # type: ignore[attr-defined]
    costs = {name: ModelCost(name, flops_per_token=sizer.flops_per_token) for name, sizer in sizers.items()}
    hashes, pairs, later, done = list[NDArray[np.uint64]](), 0, 0, 0
    for claims in _batches(plan.output_dir):
        asked = _first_round(method, claims)
        pairs += len(asked)
        later += sum(_later_pairs(claim, method) for claim in claims)
        distinct = list(dict.fromkeys((pair.premise, pair.hypothesis) for pair in asked))
        hashes.append(np.array([_hash(pair) for pair in distinct], dtype=np.uint64))
        for name, sizer in sizers.items():
            confirms = method.asks == "support+labels" and name == "labels"
            tokens, windows, failed = sizer.sizes(_longest(asked) if confirms else distinct)
            costs[name].tokens.append(tokens)
            costs[name].windowed += int((windows > 1).sum())
            costs[name].failed += failed
        done += len(claims)
        progress("plan", done, prepared.rows, {"pairs": pairs})
    models = {name: cost.figures() for name, cost in costs.items()}
    distinct_pairs = len(np.unique(np.concatenate(hashes))) if hashes else 0
    return Estimate(prepared.rows, prepared.rejects, pairs, distinct_pairs, later, models)


def _first_round(method: Any, claims: Sequence[Claim]) -> list[Pair]:
    plan = method.plan(claims)
    try:
        asked: list[Pair] = next(plan)
    except StopIteration:  # no claim of the batch needs a model
        return []
    finally:
        plan.close()
    return asked


def _later_pairs(claim: Claim, method: Any) -> int:
    """The most that later rounds could still ask of a claim: combinations, or a confirmation; no rechecks."""
    policy = method.policy
    if claim.requires_complete_set or not claim.evidence:
        return 0
    if method.asks == "support+labels":
        return 1
    if getattr(policy, "premise", "groups") != "groups" or not hasattr(policy, "max_group_size"):
        return 0
    reach = getattr(method, "range", None)
    widest = reach if reach is not None and reach.exhaustive else policy
    candidates = min(len(claim.evidence), widest.group_candidate_limit)
    return sum(comb(candidates, size) for size in range(2, widest.max_group_size + 1))


def _longest(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """The longest passage of each claim with the claim: what a confirmation would read at the most."""
    longest: dict[int, tuple[str, str]] = {}
    for pair in pairs:
        if len(pair.premise) > len(longest.get(pair.row, ("", ""))[0]):
            longest[pair.row] = (pair.premise, pair.hypothesis)
    return list(longest.values())


def _models(scorer: partial[Any], name: str = "scorer") -> dict[str, partial[Any]]:
    """The factories within a factory whose models read tokens, by name."""
    members = scorer.keywords.get("members", {})
    inner = dict(members) if isinstance(members, Mapping) else {str(n): one for n, one in enumerate(members)}
    inner |= {part: scorer.keywords[part] for part in _NESTED if part in scorer.keywords}
    if inner:
        return {key: one for part, factory in inner.items() for key, one in _models(factory, part).items()}
    return {name: scorer} if hasattr(scorer.func, "sizer") else {}


def _batches(run_dir: str) -> Iterator[list[Claim]]:
    filesystem, root = open_filesystem(run_dir)
    for batch in pads.dataset(f"{root}/work", filesystem=filesystem, format="parquet").to_batches(batch_size=_BATCH):
        if batch.num_rows:
            yield [claim_from_row(row) for row in batch.to_pylist()]


def _hash(pair: tuple[str, str]) -> int:
    return int.from_bytes(blake2b("\0".join(pair).encode(), digest_size=8).digest(), "big")
