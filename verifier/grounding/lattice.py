"""The evidence lattice: one support score from single segments and the joined set in both orders."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LatticePolicy = Callable[[Floats, Floats, Floats], Floats]
"""(largest single, joined in order, joined in reverse) to support, element by element."""

POLICIES: dict[str, LatticePolicy] = {
    "ordered_group": lambda single, ordered, reversed_: ordered,
    "order_robust_group": lambda single, ordered, reversed_: np.minimum(ordered, reversed_),
    "max_single": lambda single, ordered, reversed_: single,
    "max_subset": lambda single, ordered, reversed_: np.maximum(np.maximum(single, ordered), reversed_),
    "order_robust_max_subset": lambda single, ordered, reversed_: np.maximum(single, np.minimum(ordered, reversed_)),
    "single_group_consensus": lambda single, ordered, reversed_: np.minimum(np.minimum(single, ordered), reversed_),
}
