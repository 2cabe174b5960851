"""Every local scorer family beside a bare loop of its network over the same prompts."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer

from verifier.bench.bare import Batches, classify, probabilities, say_yes, tokenized
from verifier.bench.corpora import demo_lines, mixed_claims, texts_of
from verifier.bench.figures import Figure, Part
from verifier.bench.model import save_random_model
from verifier.protocol import LABELS
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.factcg import FactCGScorer
from verifier.scorers.hhem import HHEMScorer
from verifier.scorers.minicheck_deberta import MiniCheckDebertaScorer
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer
from verifier.scorers.minicheck_roberta import MiniCheckRobertaScorer
from verifier.scorers.nli import EntailmentScorer
from verifier.scorers.tokenization import Prompt
from verifier.terminal import console
from verifier.text.packing import pack_sentences

TITLE = "score_detailed of each family beside a bare loop of the same network over the same prompts, interleaved"

_MAX_DIFFERENCE = 1e-5  # between the probabilities of both sides: more, and they did not do the same work
_MOST_WORDS = 180  # of a premise: MiniCheck reads more than 400 tokens in chunks
_INITIALIZER_RANGE = 0.1  # wide enough that answers to different prompts differ by far more
_FACTCG_WORDS = 550

Pairs = Sequence[tuple[str, str]]


def measure_families(
    scratch: str,
    rounds: int = 3,
    claims: int = 120,
    token_budget: int = 4096,
    shape: Mapping[str, int] | None = None,
    target: float | None = None,
) -> Part:
    """Pairs per second of both sides for each family, in turns in this process.

    The scorer's clock goes over ``score_detailed``, packing and tokenizing included, the loop's over the model's calls
    alone. Both use all threads of torch: the scorer gives each a batch of its own, the loop gives all of them one.
    So busy neighbours slow the loop down more than the scorer: wall time is fair on an idle machine only.

    Args:
        scratch: folder for the models, which are deleted in the end.
        rounds: how often both sides are measured, after one turn each that warms them up and compares their answers.
        claims: synthetic claims of mixed length; each of their one to three passages is a pair, unless so long that
            some family reads it in parts.
        token_budget: tokens of a batch on both sides.
        shape: of all networks, see ``save_random_model``.
        target: least share of the loop's speed.
    """
    Path(scratch).mkdir(parents=True, exist_ok=True)
    lines = list(mixed_claims(claims))
    pairs = _uncut_pairs(lines)
    threads = torch.get_num_threads()
    measured: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory(dir=scratch) as folder:
        models: dict[tuple[str, tuple[str, ...]], str] = {}
        for name, family in _FAMILIES.items():
            key = family.architecture, family.labels
            if key not in models:
                texts = texts_of([*demo_lines(), *lines])
                models[key] = save_random_model(Path(folder) / name, texts, shape or {}, *key, _INITIALIZER_RANGE)
            measured[name] = _measure(family, models[key], pairs, rounds, token_budget, threads)
            _say(name, measured[name])
    figures = [figure for name, sides in measured.items() for figure in _figures(name, len(pairs), sides, target)]
    return Part("families", TITLE, figures, _notes(len(pairs), threads, measured), {"families": measured})


def _uncut_pairs(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    asked = dict.fromkeys((item["text"], line["claim"]) for line in lines for item in line["evidence"])
    return [(premise, hypothesis) for premise, hypothesis in asked if len(premise.split()) <= _MOST_WORDS]


def _measure(
    family: "_Family", model: str, pairs: Pairs, rounds: int, token_budget: int, threads: int
) -> dict[str, Any]:
    scorer = family.scorer(model, token_budget=token_budget)
    batches = tokenized(AutoTokenizer.from_pretrained(model), family.prompts(scorer, pairs), token_budget)
    forward = partial(family.forward, scorer._network)

    def loop() -> list[torch.Tensor]:
        torch.set_num_threads(threads)  # the scorer's threads have set one for themselves
        return probabilities(forward, batches)

    scores, expected = scorer.score_detailed(pairs).values, _in_order(loop(), batches)[:, family.columns]
    tokens, padded = scorer.engine.tokens_scored, scorer.engine.tokens_padded
    turns = [(_timed(lambda: scorer.score_detailed(pairs)), _timed(loop)) for _ in range(rounds)]
    return {
        **{
            f"{side}_{clock}": [turn[number][clock] for turn in turns]
            for number, side in enumerate(("scorer", "loop"))
            for clock in ("seconds", "cpu_seconds")
        },
        "scorer_padding": padded / (tokens + padded),
        "loop_padding": batches.padding_share,
        "difference": float(np.abs(scores - expected).max()),
        "spread": float(np.std(expected, axis=0).max()),
        "scorer_tokens": tokens,
        "loop_tokens": batches.tokens,
        "longest": batches.longest,
        "batches": len(batches.inputs),
    }


def _in_order(outputs: Sequence[torch.Tensor], batches: Batches) -> NDArray[np.float64]:
    """The batches' probabilities in the order of the prompts, shape (n, columns)."""
    values: NDArray[np.float64] = torch.cat(list(outputs)).double().numpy()
    return values[np.argsort(np.concatenate(batches.indices))]


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def _figures(name: str, pairs: int, sides: Mapping[str, Any], target: float | None) -> list[Figure]:
    scorer, loop = sides["scorer_seconds"], sides["loop_seconds"]
    cpu = zip(sides["scorer_cpu_seconds"], sides["loop_cpu_seconds"], strict=True)
    return [
        Figure(f"{name}/share_of_loop", [b / s for s, b in zip(scorer, loop, strict=True)], "x", target),
        Figure(f"{name}/share_of_loop_cpu", [b / s for s, b in cpu], "x"),
        Figure(f"{name}/pairs_per_second/scorer", [pairs / seconds for seconds in scorer], "1/s"),
        Figure(f"{name}/pairs_per_second/loop", [pairs / seconds for seconds in loop], "1/s"),
        Figure(f"{name}/padding", [sides["scorer_padding"]]),
        Figure(f"{name}/max_difference", [sides["difference"]], "", most=_MAX_DIFFERENCE),
    ]


def _notes(pairs: int, threads: int, measured: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    tokens = [sides["loop_tokens"] for sides in measured.values()]
    note = (
        f"{pairs:,} distinct pairs of {min(tokens):,} to {max(tokens):,} tokens, {threads} torch threads on both sides"
    )
    wrong = [name for name, sides in measured.items() if not sides["difference"] <= _MAX_DIFFERENCE]
    return (note, f"PROBABILITIES DIFFER: {', '.join(wrong)}") if wrong else (note,)


def _say(name: str, sides: Mapping[str, Any]) -> None:
    told = [", ".join(f"{seconds:.2f}" for seconds in sides[f"{side}_seconds"]) for side in ("scorer", "loop")]
    console.print(f"families, {name}: the scorer {told[0]} s, the bare loop {told[1]} s")


class _Family(NamedTuple):
    """A scorer class, the network behind it, and how a plain loop asks and reads that network.

    ``columns`` are those of the softmax that the scorer answers with; ``document`` is what the scorer's packing makes
    of a text that it does not cut.
    """

    scorer: Callable[..., Any]
    architecture: str
    labels: tuple[str, ...]
    forward: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]
    columns: int | slice
    document: Callable[[str], str] = str

    def prompts(self, scorer: Any, pairs: Pairs) -> list[Prompt]:
        asked = [(self.document(premise), hypothesis) for premise, hypothesis in pairs]
        return [scorer.prompt(*pair) if hasattr(scorer, "prompt") else pair for pair in asked]


def _first_token(network: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return classify(network, ids, mask)[:, 0]


def _one_a_line(text: str) -> str:
    return "\n".join(pack_sentences(text, _FACTCG_WORDS))


def _hhem(model: str, **options: Any) -> HHEMScorer:
    return HHEMScorer(model, tokenizer_model=model, **options)


_BOTH = ("unsupported", "supported")
_FAMILIES = {
    "cross_encoder": _Family(CrossEncoderScorer, "deberta", LABELS, classify, slice(3)),
    "nli": _Family(EntailmentScorer, "deberta", LABELS, classify, 0),
    "minicheck_roberta": _Family(MiniCheckRobertaScorer, "roberta", _BOTH, classify, 1),
    "minicheck_deberta": _Family(MiniCheckDebertaScorer, "deberta", _BOTH, classify, 1),
    "minicheck_flan_t5": _Family(MiniCheckFlanT5Scorer, "t5", _BOTH, say_yes, 1),
    "minicheck_flan_t5_premise_hypothesis": _Family(
        partial(MiniCheckFlanT5Scorer, serialization="premise_hypothesis"), "t5", _BOTH, say_yes, 1
    ),
    "factcg": _Family(FactCGScorer, "deberta", _BOTH, classify, 1, _one_a_line),
    "hhem": _Family(_hhem, "t5_tokens", _BOTH, _first_token, 1),
}
