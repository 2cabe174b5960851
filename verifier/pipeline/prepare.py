"""The prepare phase: any input form in, ``work/`` and ``rejects/`` out, and the totals known.

Cheap, on the CPU, and idempotent: ``prepare.json`` is written last and is the only mark of completeness. Without it
everything starts again from nothing; with it, and the same input, nothing is done.
"""

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import batched  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, Literal
