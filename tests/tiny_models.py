"""Tiny models of the real architectures: random weights, real tokenizers trained on a few lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
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

ODD_LABELS = ("neutral", "ENTAILMENT", "Contradiction")
FAMILIES = ("deberta", "roberta", "bert")
TOKENIZERS = (*FAMILIES, "t5")

LINES = (
    "The museum opened in 1995 and drew 20,000 visitors in its first year.",
    "It did not open before 1995, according to the town's records.",
    "Ada moved the project from Postgres to SQLite because backups were slow.",
    "Reportedly, the service will be switched off in March; nobody has confirmed it.",
    "Temperatures fell below zero on Monday, and the river froze over night.",
    "The committee plans to vote, but whether it will pass remains uncertain.",
    "Le café était fermé. Die Straße ist naß. 東京都は日本の首都です。",
)


def _unigram() -> Any:
    raw = Tokenizer(models.Unigram())
    raw.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(), normalizers.Strip(left=False)]
    )
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    trainer = trainers.UnigramTrainer(vocab_size=180, special_tokens=special, unk_token="[UNK]", show_progress=False)
    raw.train_from_iterator(LINES, trainer)
    scores = {entry[0]: entry[1] for entry in _vocabulary(raw)}
    pieces = [(piece, 0.0) for piece in special]
    pieces += [(piece, score) for piece, score in scores.items() if piece not in special]
    return DebertaV2Tokenizer(vocab=[*pieces, ("[MASK]", 0.0)], unk_id=3)


def _vocabulary(tokenizer: Tokenizer) -> list[tuple[str, float]]:
    return [(piece, float(score)) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]


def _byte_bpe() -> Any:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(LINES, trainer)
    merges = [tuple(merge) for merge in json.loads(raw.to_str())["model"]["merges"]]
    return RobertaTokenizer(vocab=raw.get_vocab(), merges=merges)


def _word_piece() -> Any:
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=220, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False
    )
    raw.train_from_iterator(LINES, trainer)
    return BertTokenizer(vocab=raw.get_vocab())


def _t5_unigram() -> Any:
    raw = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=180, special_tokens=special, unk_token="<unk>", show_progress=False)
    raw.train_from_iterator(LINES, trainer)
    # With the hundred extra ids of T5 there are ids beyond 209, which MiniCheck reads.
    extra = [(f"<extra_id_{number}>", 0.0) for number in reversed(range(100))]
    return T5Tokenizer(vocab=[*_vocabulary(raw), *extra])


def tokenizer(family: str) -> Any:
    """The real fast tokenizer class of ``deberta``, ``roberta``, ``bert`` or ``t5``, trained on ``LINES``."""
    return {"deberta": _unigram, "roberta": _byte_bpe, "bert": _word_piece, "t5": _t5_unigram}[family]()


def _model(family: str, vocab_size: int, positions: int, labels: Sequence[str]) -> Any:
    size: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        # Wide enough that different inputs get clearly different probabilities.
        "initializer_range": 0.2,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
    }
    if family == "deberta":
        # The shape of the published v3 models: relative positions only, buckets, shared keys, a convolution.
        config = DebertaV2Config(
            **size,
            max_position_embeddings=positions,
            relative_attention=True,
            position_buckets=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
            type_vocab_size=0,
            pad_token_id=0,
        )
        return DebertaV2ForSequenceClassification(config)
    if family == "roberta":
        return RobertaForSequenceClassification(
            RobertaConfig(**size, max_position_embeddings=positions + 2, type_vocab_size=1, pad_token_id=1)
        )
    return BertForSequenceClassification(BertConfig(**size, max_position_embeddings=positions))


def save_tiny(
    family: str, directory: Path, positions: int = 64, labels: Sequence[str] = ODD_LABELS, seed: int = 0
) -> str:
    """Write a tiny sequence classification model and its tokenizer; returns the directory as a string."""
    torch.manual_seed(seed)
    made = tokenizer(family)
    made.model_max_length = positions
    model = _model(family, len(made), positions, labels).eval()
    model.save_pretrained(directory)
    made.save_pretrained(directory)
    return str(directory)


def _t5_config(vocab_size: int) -> T5Config:
    return T5Config(
        vocab_size=vocab_size,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        relative_attention_num_buckets=8,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        dropout_rate=0.0,
    )


def save_tiny_flan_t5(directory: Path, seed: int = 0) -> str:
    """Write a tiny sequence-to-sequence T5 and its tokenizer; returns the directory as a string."""
    torch.manual_seed(seed)
    made = tokenizer("t5")
    model = T5ForConditionalGeneration(_t5_config(len(made))).eval()
    model.lm_head.weight.data *= 0.05  # else every answer is a certain one
    model.save_pretrained(directory)
    made.save_pretrained(directory)
    return str(directory)


def save_tiny_hhem(directory: Path, seed: int = 0) -> tuple[str, str]:
    """Write a tiny HHEM as its hub has it, and what it takes from flan-t5-base; returns both directories.

    The first has weights under the prefix ``t5.`` and the configuration of a class that exists in no library.
    """
    torch.manual_seed(seed)
    made = tokenizer("t5")
    base, weights = directory / "base", directory / "hhem"
    base.mkdir()
    weights.mkdir()
    config = _t5_config(len(made))
    config.save_pretrained(base)
    made.save_pretrained(base)
    config.num_labels = 2
    model = T5ForTokenClassification(config)
    model.classifier.weight.data *= 0.2  # else every answer is a certain one
    state = model.state_dict()
    state.pop("transformer.encoder.embed_tokens.weight")
    save_file({f"t5.{name}": tensor for name, tensor in state.items()}, weights / "model.safetensors", {"format": "pt"})
    (weights / "config.json").write_text(
        json.dumps({"model_type": "HHEMv2", "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"}})
    )
    return str(weights), str(base)
