"""Models of the real architectures with random weights: as fast as the real ones, and as useless as they look.

Vocabularies are as large as the published ones; the tokenizers are trained on a few texts and use a part of them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DebertaV2Tokenizer,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
    T5Tokenizer,
)
from transformers.utils.logging import disable_progress_bar

from verifier.protocol import LABELS

XSMALL: dict[str, int] = {
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "position_buckets": 256,
}
MAX_LENGTH = 512
_PIECES = 4000
_DEBERTA_SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
_T5_SPECIAL = ["<pad>", "</s>", "<unk>"]
_ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
_T5_EXTRA = 100  # of T5's own ids at the end of its vocabulary
_T5_SOFTER = 0.05  # times the published initialization of the last layer, with which every answer is a certain one


def save_random_model(
    folder: Path,
    texts: Sequence[str],
    shape: Mapping[str, int],
    architecture: str = "deberta",
    labels: Sequence[str] = LABELS,
    initializer_range: float = 0.02,
) -> str:
    """Write model and tokenizer; returns the folder.

    Args:
        folder: where.
        texts: what the tokenizer is trained on.
        shape: changes to DeBERTa-v3-xsmall's, ``XSMALL``, and to the published ``vocab_size``; in T5 both stacks have
            ``num_hidden_layers``, and only DeBERTa has ``position_buckets``.
        architecture: ``deberta`` or ``roberta`` (sequence classification), ``t5`` (sequence to sequence) or
            ``t5_tokens`` (token classification).
        labels: of a classification, in the order of its logits.
        initializer_range: of DeBERTa's and RoBERTa's weights; with the published 0.02 all answers are nearly alike.
    """
    torch.manual_seed(0)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    kind = _ARCHITECTURES[architecture]
    others: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
        "initializer_range": initializer_range,
    }
    kind.tokenizer(texts).save_pretrained(folder)
    kind.network({"vocab_size": kind.vocab_size, **XSMALL, **shape}, others).eval().save_pretrained(folder)
    return str(folder)


def _deberta(size: Mapping[str, int], others: Mapping[str, Any]) -> Any:
    settings: dict[str, Any] = {  # of the published v3 models
        **size,
        **others,
        "max_position_embeddings": MAX_LENGTH,
        "relative_attention": True,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "pad_token_id": 0,
    }
    return DebertaV2ForSequenceClassification(DebertaV2Config(**settings))


def _roberta(size: Mapping[str, int], others: Mapping[str, Any]) -> Any:
    settings: dict[str, Any] = {
        **{name: value for name, value in size.items() if name != "position_buckets"},
        **others,
        "max_position_embeddings": MAX_LENGTH + 2,  # positions are numbered from behind the padding id
        "type_vocab_size": 1,
    }
    return RobertaForSequenceClassification(RobertaConfig(**settings))


def _t5_config(size: Mapping[str, int], others: Mapping[str, Any]) -> T5Config:
    settings: dict[str, Any] = {  # of the published Flan-T5 models
        **others,
        "vocab_size": size["vocab_size"],
        "d_model": size["hidden_size"],
        "d_kv": size["hidden_size"] // size["num_attention_heads"],
        "d_ff": size["intermediate_size"],
        "num_layers": size["num_hidden_layers"],
        "num_heads": size["num_attention_heads"],
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    }
    return T5Config(**settings)


def _t5(size: Mapping[str, int], others: Mapping[str, Any]) -> Any:
    model: Any = T5ForConditionalGeneration(_t5_config(size, others))
    model.lm_head.weight.data *= _T5_SOFTER
    return model


def _t5_tokens(size: Mapping[str, int], others: Mapping[str, Any]) -> Any:
    model: Any = T5ForTokenClassification(_t5_config(size, others))
    model.classifier.weight.data *= _T5_SOFTER
    return model


def _deberta_tokenizer(texts: Sequence[str]) -> Any:
    vocabulary = [*_unigram(texts, _DEBERTA_SPECIAL, "[UNK]"), ("[MASK]", 0.0)]
    return DebertaV2Tokenizer(vocab=vocabulary, unk_id=3, model_max_length=MAX_LENGTH)


def _t5_tokenizer(texts: Sequence[str]) -> Any:
    extra = [(f"<extra_id_{number}>", 0.0) for number in reversed(range(_T5_EXTRA))]
    return T5Tokenizer(vocab=[*_unigram(texts, _T5_SPECIAL, "<unk>"), *extra], model_max_length=MAX_LENGTH)


def _unigram(texts: Sequence[str], special: list[str], unknown: str) -> list[tuple[str, float]]:
    """Pieces and their scores, the special ones first."""
    raw: Any = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=_PIECES, special_tokens=special, unk_token=unknown, show_progress=False
    )
    raw.train_from_iterator(texts, trainer)
    learnt = json.loads(raw.to_str())["model"]["vocab"]
    pieces = [(piece, 0.0) for piece in special]
    return pieces + [(piece, float(score)) for piece, score in learnt if piece not in special]


def _roberta_tokenizer(texts: Sequence[str]) -> Any:
    raw: Any = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=_PIECES,
        special_tokens=_ROBERTA_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    merges: Any = [tuple(merge) for merge in json.loads(raw.to_str())["model"]["merges"]]
    return RobertaTokenizer(vocab=raw.get_vocab(), merges=merges, model_max_length=MAX_LENGTH)


class _Architecture(NamedTuple):
    tokenizer: Callable[[Sequence[str]], Any]
    network: Callable[[Mapping[str, int], Mapping[str, Any]], Any]
    vocab_size: int


_ARCHITECTURES = {
    "deberta": _Architecture(_deberta_tokenizer, _deberta, 128_100),
    "roberta": _Architecture(_roberta_tokenizer, _roberta, 50_265),
    "t5": _Architecture(_t5_tokenizer, _t5, 32_128),
    "t5_tokens": _Architecture(_t5_tokenizer, _t5_tokens, 32_128),
}
