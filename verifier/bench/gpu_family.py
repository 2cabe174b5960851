"""One family of the GPU check: its sides in turns over the same pairs, and the figures that come of it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from verifier.bench.gpu_pairs import Pairs
from verifier.bench.gpu_shapes import Family
from verifier.bench.gpu_sides import BareLoop, Values, load_predict, load_scorer, save_model, score
from verifier.scorers.sizing import forward_flops

ROUNDS = 3
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.1}
"""The most that probabilities of two sides may differ: rounding, which batches of another shape do differently.

In bfloat16 that is 0.005 at most among ten pairs of ``minilm_l6``, and more among thousands; answers to two different
prompts out of as many differ by far more.
"""
_SAMPLE = 64  # claims, or all that there are, that the speed is guessed from


@dataclass(frozen=True)
class Settings:
    """How a family is measured.

    Attributes:
        device: ``cpu`` or ``cuda``.
        tiny: a tiny network in place of the published shape.
        turn_seconds: about how long one turn of the scorer takes; no turn of claim-by-claim predictions takes longer.
        deadline: ``time.perf_counter()`` after which no further round begins; the first always does.
        peak_tflops: of the device.
    """

    device: str
    tiny: bool
    turn_seconds: float
    deadline: float
    peak_tflops: float | None


def measure_family(family: Family, folder: Path, claims: Sequence[Pairs], settings: Settings) -> dict[str, Any]:
    """The figures of one family, JSON values.

    All sides are in turns, after one turn each that warms them up and compares their answers. Seconds of the scorer
    and of predict go over everything from texts to probabilities, those of the bare loop over the network's calls and
    the copy of its answers from the device. Raises VerificationError where a pair does not fit the model uncut.
    """
    started = time.perf_counter()
    device = torch.device(settings.device)
    model = save_model(folder, family, settings.tiny)
    scorer = load_scorer(family, model, settings.device)
    build_seconds = time.perf_counter() - started
    claims = _for_one_turn(scorer, claims, settings.turn_seconds)
    pairs = [pair for claim in claims for pair in claim]
    tokens, padded = scorer.engine.tokens_scored, scorer.engine.tokens_padded
    expected, memory = _with_peak_memory(device, lambda: score(scorer, pairs))
    tokens, padded = scorer.engine.tokens_scored - tokens, scorer.engine.tokens_padded - padded
    loop = BareLoop(scorer, model, pairs, device)
    answers, loop_memory = _with_peak_memory(device, loop)
    sides: dict[str, Callable[[], Values]] = {"scorer": lambda: score(scorer, pairs), "bare_loop": loop}
    predict = load_predict(model, settings.device, scorer.dtype) if family.scorer == "cross_encoder" else None
    if predict:
        sides["predict_all"] = lambda: predict(pairs)
        sides["predict_by_claim"] = lambda: _by_claim(predict, claims, settings.turn_seconds)
    compared = {"bare_loop": answers} | {name: sides[name]() for name in list(sides)[2:]}
    difference = {name: float(np.abs(found - expected[: len(found)]).max()) for name, found in compared.items()}
    turns = _turns(sides, settings.deadline)
    operations = _flops(loop.lengths, scorer._network.config)
    tolerance = TOLERANCE[scorer.dtype]
    return {
        "published": family.published,
        "scorer": type(scorer).__name__,
        "parameters": sum(weights.numel() for weights in scorer._network.parameters()),
        "dtype": scorer.dtype,
        "token_budget": scorer.engine.token_budget,
        "claims": len(claims),
        "pairs": len(pairs),
        "tokens": tokens,
        "tokens_of_a_pair": dict(zip(("p5", "p50", "p95", "max"), _percentiles(loop.lengths), strict=True)),
        "rounds": len(turns["scorer"]),
        "sides": {name: _side(turns[name], loop.lengths, operations, settings.peak_tflops) for name in sides},
        "ratios": {name: _ratio(turns["scorer"], turns[name]) for name in sides if name != "scorer"},
        "padding_share": {"scorer": padded / (tokens + padded), "bare_loop": loop.batches.padding_share},
        "peak_memory_bytes": {"scorer": memory, "bare_loop": loop_memory},
        "max_difference": difference,
        "tolerance": tolerance,
        "agree": all(value <= tolerance for value in difference.values()),
        "spread": float(np.std(expected, axis=0).max()),
        "build_seconds": build_seconds,
        "seconds": time.perf_counter() - started,
    }


def _for_one_turn(scorer: Any, claims: Sequence[Pairs], seconds: float) -> Sequence[Pairs]:
    """As many claims from the first on as the scorer gets through in about so many seconds, or all."""
    sample = [pair for claim in claims[:_SAMPLE] for pair in claim]
    score(scorer, sample)
    started = time.perf_counter()
    score(scorer, sample)
    wanted = len(sample) * seconds / (time.perf_counter() - started)
    enough = sum(pairs < wanted for pairs in accumulate(map(len, claims)))
    return claims[: max(enough, _SAMPLE)]


def _by_claim(predict: Callable[[Pairs], Values], claims: Sequence[Pairs], seconds: float) -> Values:
    """A call for each claim from the first on until the time is over; the answers so far."""
    answers, end = [], time.perf_counter() + seconds
    for claim in claims:
        answers.append(predict(claim))
        if time.perf_counter() >= end:
            break
    return np.concatenate(answers)


def _with_peak_memory(device: torch.device, side: Callable[[], Values]) -> tuple[Values, int | None]:
    """A side's answers and the most bytes that tensors took on the device meanwhile, weights included; None: a CPU."""
    if device.type != "cuda":
        return side(), None
    torch.cuda.reset_peak_memory_stats(device)
    return side(), int(torch.cuda.max_memory_allocated(device))


def _turns(sides: Mapping[str, Callable[[], Values]], deadline: float) -> dict[str, list[tuple[int, float]]]:
    """Pairs and seconds of each round of each side."""
    turns: dict[str, list[tuple[int, float]]] = {name: [] for name in sides}
    for number in range(ROUNDS):
        if number and time.perf_counter() >= deadline:
            break
        for name, side in sides.items():
            started = time.perf_counter()
            done = len(side())
            turns[name].append((done, time.perf_counter() - started))
    return turns


def _flops(lengths: NDArray[np.int64], config: Any) -> NDArray[np.float64]:
    """Operations that each pair needs of the model, float64 of shape (n,).

    A forward pass over T tokens takes 2 T operations a weight and 4 T² a layer and hidden unit for the attention
    (Chowdhery et al. 2022, PaLM, appendix B, without its backward pass). Left out: embeddings, what DeBERTa's attention
    to relative positions adds, and the one token that a decoder writes; so utilization is rather too low.
    """
    tokens = lengths.astype(np.float64)
    attention: float = 4.0 * config.num_hidden_layers * config.hidden_size
    return forward_flops(config) * tokens + attention * tokens**2


def _side(
    turns: Sequence[tuple[int, float]],
    lengths: NDArray[np.int64],
    operations: NDArray[np.float64],
    peak_tflops: float | None,
) -> dict[str, Any]:
    """Medians over the rounds.

    Model FLOPs utilization (same source as ``_flops``) is the operations that the model needs for the pairs, padding
    not counted, over what the device could have done in the same seconds.
    """
    used = [operations[:pairs].sum() / seconds for pairs, seconds in turns]
    return {
        "pairs_per_second": median(pairs / seconds for pairs, seconds in turns),
        "tokens_per_second": median(float(lengths[:pairs].sum()) / seconds for pairs, seconds in turns),
        "model_flops_utilization": float(median(used)) / (peak_tflops * 1e12) if peak_tflops else None,
        "pairs": [pairs for pairs, _ in turns],
        "seconds": [seconds for _, seconds in turns],
    }


def _ratio(scorer: Sequence[tuple[int, float]], other: Sequence[tuple[int, float]]) -> float:
    """Pairs per second of the scorer over those of another side, the median of the rounds."""
    return median((n / s) / (m / t) for (n, s), (m, t) in zip(scorer, other, strict=True))


def _percentiles(lengths: NDArray[np.int64]) -> list[int]:
    return [round(value) for value in np.percentile(lengths, [5, 50, 95, 100])]
