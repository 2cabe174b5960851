"""A model of DeBERTa-v3-xsmall's shape with random weights: as fast as the real one, and as useless as it looks."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, DebertaV2Tokenizer
from transformers.utils.logging import disable_progress_bar

from verifier.protocol import LABELS

XSMALL: dict[str, int] = {
    "vocab_size": 128_100,
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "position_buckets": 256,
}
MAX_LENGTH = 512
_PIECES = 4000
_SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]


def save_random_model(folder: Path, texts: Sequence[str], shape: Mapping[str, int]) -> str:
    """Write model and tokenizer; returns the folder.

    Args:
        folder: where.
        texts: what the unigram tokenizer is trained on; it uses a part of the embedding's rows.
        shape: changes to ``XSMALL``.
    """
    torch.manual_seed(0)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    settings: dict[str, Any] = {
        **XSMALL,
        **shape,
        "max_position_embeddings": MAX_LENGTH,
        "relative_attention": True,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "pad_token_id": 0,
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: index for index, label in enumerate(LABELS)},
    }
    _tokenizer(texts).save_pretrained(folder)
    model: Any = DebertaV2ForSequenceClassification(DebertaV2Config(**settings))
    model.eval().save_pretrained(folder)
    return str(folder)


def _tokenizer(texts: Sequence[str]) -> Any:
    raw: Any = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=_PIECES, special_tokens=_SPECIAL, unk_token="[UNK]", show_progress=False
    )
    raw.train_from_iterator(texts, trainer)
    learnt = json.loads(raw.to_str())["model"]["vocab"]
    pieces = [(piece, 0.0) for piece in _SPECIAL]
    pieces += [(piece, float(score)) for piece, score in learnt if piece not in _SPECIAL]
    return DebertaV2Tokenizer(vocab=[*pieces, ("[MASK]", 0.0)], unk_id=3, model_max_length=MAX_LENGTH)
