"""What the GPU check measures: the networks' published shapes, and what devices can do at most."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple


class Family(NamedTuple):
    """A network of a published model's shape.

    Attributes:
        published: the model that has this shape.
        scorer: the class that asks it: ``CrossEncoderScorer``, which reads a pair and has three labels, or
            ``MiniCheckFlanT5Scorer``, which reads one string and says yes or no.
        architecture, shape: arguments of ``save_random_model``.
    """

    published: str
    scorer: Literal["cross_encoder", "minicheck_flan_t5"]
    architecture: Literal["deberta", "roberta", "t5"]
    shape: Mapping[str, int]


def _shape(hidden: int, layers: int, heads: int, intermediate: int, vocab_size: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": intermediate,
        "vocab_size": vocab_size,
    }


FAMILIES: Mapping[str, Family] = {
    "minilm_l6": Family(
        "cross-encoder/nli-MiniLM2-L6-H768", "cross_encoder", "roberta", _shape(768, 6, 12, 3072, 50_265)
    ),
    "deberta_v3_base": Family(
        "cross-encoder/nli-deberta-v3-base", "cross_encoder", "deberta", _shape(768, 12, 12, 3072, 128_100)
    ),
    "deberta_v3_large": Family(
        "cross-encoder/nli-deberta-v3-large", "cross_encoder", "deberta", _shape(1024, 24, 16, 4096, 128_100)
    ),
    "flan_t5_large": Family(
        "lytang/MiniCheck-Flan-T5-Large", "minicheck_flan_t5", "t5", _shape(1024, 24, 16, 2816, 32_128)
    ),
}
TINY: Mapping[str, int] = _shape(32, 2, 2, 64, 8192) | {"position_buckets": 16}
"""A shape for trying the check itself out, of any architecture."""

_PEAK_TFLOPS = (
    (r"H[12]00 NVL", 835.5),
    (r"H100 PCIe", 756.0),
    (r"H[12]00", 989.4),
    (r"A100", 312.0),
    (r"L4\b", 121.0),
    (r"T4\b", 65.0),
)


def peak_tflops(device_name: str) -> float | None:
    """The most 10^12 operations a second of a GPU by its name, None for one that is not listed.

    Dense bfloat16 (of a T4: float16) on the tensor cores, as NVIDIA's data sheets of the devices state it; where they
    state it with sparsity, half of that.
    """
    return next((peak for pattern, peak in _PEAK_TFLOPS if re.search(rf"\b{pattern}", device_name)), None)
