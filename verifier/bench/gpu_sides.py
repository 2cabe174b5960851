"""The sides of the GPU check: a scorer, the bare loop of its network, and sentence-transformers' CrossEncoder."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer

from verifier.bench.bare import Batches, classify, probabilities, say_yes, tokenized
from verifier.bench.corpora import demo_lines, texts_of
from verifier.bench.gpu_pairs import Pairs
from verifier.bench.gpu_shapes import TINY, Family
from verifier.bench.model import save_random_model
from verifier.errors import VerificationError
from verifier.protocol import LABELS
from verifier.scorers.base import raise_first
from verifier.scorers.batching import size_chunks
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.engine import CHUNK_CHARACTERS
from verifier.scorers.loading import DTYPES
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer

Values = NDArray[np.float64]

# Of initial weights: wide enough that answers to different prompts differ by far more than rounding makes of one.
_TINY_RANGE, _RANGE = 0.1, 0.05


def save_model(folder: Path, family: Family, tiny: bool) -> str:
    """Write the family's network with random weights and a tokenizer of as many pieces; returns the folder."""
    shape = dict(TINY if tiny else family.shape)
    initializer_range = _TINY_RANGE if tiny else _RANGE
    save_random_model(folder, texts_of(demo_lines()), shape, family.architecture, LABELS, initializer_range)
    _fill_vocabulary(folder / "tokenizer.json", shape["vocab_size"])
    return str(folder)


def _fill_vocabulary(file: Path, size: int) -> None:
    """Add pieces that no text needs to a saved tokenizer, so that looking pieces up takes what it takes in a real one.

    Each is two learnt pieces put together, at a score below all others.
    """
    saved = json.loads(file.read_text(encoding="utf-8"))
    vocabulary: Any = saved["model"]["vocab"]
    of_scores = isinstance(vocabulary, list)
    learnt = [entry[0] for entry in vocabulary] if of_scores else list(vocabulary)
    known, lowest = set(learnt), min((entry[1] for entry in vocabulary), default=0.0) - 10 if of_scores else 0.0
    plain = [piece for piece in learnt if not piece.startswith(("<", "["))]
    for piece in (first + second for first in plain for second in plain):
        if len(known) == size:
            break
        if piece not in known:
            if of_scores:
                vocabulary.append([piece, lowest])
            else:
                vocabulary[piece] = len(known)
            known.add(piece)
    file.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")


def load_scorer(family: Family, model: str, device: str) -> Any:
    """The family's scorer; a document is read whole, as the pairs of the check fit."""
    if family.scorer == "cross_encoder":
        return CrossEncoderScorer(model, device=device)
    return MiniCheckFlanT5Scorer(model, device=device, packing="sentences")


def score(scorer: Any, pairs: Pairs) -> Values:
    """The scorer's probabilities, shape (n, 3), or (n, 1) where it gives support.

    Raises VerificationError where a pair has none, or does not fit the model uncut.
    """
    scores = scorer.score_detailed(pairs)
    raise_first(scores.errors)
    if scores.windows.max() > 1:
        raise VerificationError("a pair is too long for the model, so the sides would not do the same work")
    values: Values = scores.values.reshape(len(pairs), -1)
    return values


class BareLoop:
    """Nothing but the network, over the very batches that the scorer makes, which wait on the device.

    Args:
        scorer: whose network, prompts and token budget are taken; the tokenizer is loaded apart from it.
        model: the directory of both.
        pairs: what to run over.
        device: where.

    Attributes:
        batches: the tokenized prompts.
        lengths: tokens of each pair's prompt, int64 of shape (n,).
    """

    def __init__(self, scorer: Any, model: str, pairs: Pairs, device: torch.device) -> None:
        support = hasattr(scorer, "score_pairs")
        self._forward = partial(say_yes if support else classify, scorer._network)
        self._columns = slice(1, 2) if support else slice(3)
        prompts = [scorer.prompt(*pair) for pair in pairs] if support else list(pairs)
        self.batches = _same_batches(AutoTokenizer.from_pretrained(model), prompts, pairs, scorer.engine.token_budget)
        self._order = np.argsort(np.concatenate(self.batches.indices))
        self.lengths = torch.cat([mask.sum(1) for _, mask in self.batches.inputs]).numpy()[self._order]
        self.batches = _moved(self.batches, device)

    def __call__(self) -> Values:
        """The probabilities in the order of the pairs, in the form of ``score``."""
        outputs: Values = torch.cat(probabilities(self._forward, self.batches)).double().cpu().numpy()
        return outputs[self._order][:, self._columns]


def _same_batches(tokenizer: Any, prompts: Sequence[Any], pairs: Pairs, token_budget: int) -> Batches:
    """Chunk by chunk as the scorers tokenize, so that batches do not differ at the borders of chunks either."""
    sizes = [len(premise) + len(hypothesis) for premise, hypothesis in pairs]
    chunks = size_chunks(sizes, CHUNK_CHARACTERS)
    parts = [tokenized(tokenizer, [prompts[index] for index in chunk], token_budget) for chunk in chunks]
    return Batches(
        [inputs for part in parts for inputs in part.inputs],
        [chunk[batch] for chunk, part in zip(chunks, parts, strict=True) for batch in part.indices],
        sum(part.tokens for part in parts),
        sum(part.cells for part in parts),
        max(part.longest for part in parts),
    )


def _moved(batches: Batches, device: torch.device) -> Batches:
    inputs = [(ids.to(device), mask.to(device)) for ids, mask in batches.inputs]
    return Batches(inputs, batches.indices, batches.tokens, batches.cells, batches.longest)


def load_predict(model: str, device: str, dtype: str) -> Callable[[Pairs], Values] | None:
    """``CrossEncoder(model).predict`` at its default batch size, in the same arithmetic; None where not installed."""
    try:
        library = import_module("sentence_transformers")
    except ImportError:
        return None
    encoder = library.CrossEncoder(model, device=device, model_kwargs={"dtype": DTYPES[dtype]}, local_files_only=True)

    def predict(pairs: Pairs) -> Values:
        answers = encoder.predict(list(pairs), apply_softmax=True, show_progress_bar=False)
        return np.asarray(answers, dtype=np.float64)

    return predict
