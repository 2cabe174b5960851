"""The embedded default three-label scorer: a heuristic over MiniLM cosines and words, no download needed.

It is not an entailment model. It reads a premise as segments and asks three questions: how much of the
claim's word weight do the best segments hold, how close are they in embedding space, and does a segment that
says nearly the same thing differ in a number, a weekday, a month or its polarity? It cannot see who did what
to whom, synonyms beyond what the cosine gives, or arithmetic. README gives its measured quality.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.embedders import TransformerEmbedder
from verifier.fusion import fuse, numeric_atoms, tokenize
from verifier.protocol import Scores
from verifier.text.segments import segments

FORMULA_VERSION = 1

# Tuned on the WiCE dev split and a few examples of our own.
BETA = 0.4  # weight of the cosine in the fused strength of support
SLOPE, MIDPOINT = 8.0, 0.6  # logistic map of a strength to a probability: 0.8 at 0.773, 0.96 at 1
MAX_SEGMENTS = 3  # segments that may carry a claim together
MIN_GAIN = 0.05  # share of the claim's weight that a further segment must add
MIN_COSINE = 0.2  # and how close to the claim it must be
MIN_OVERLAP = 0.6  # share of the claim (values aside) that a segment must hold to disagree with it
FLOOR = 0.02  # probability of a label that nothing speaks for

_SEGMENT_WORDS = 80  # longer segments are cut, so that the embedder reads them whole
_MARKER = re.compile(r"^\[E[0-9]+\] ", re.MULTILINE)
_NEGATORS = frozenset(
    "not no never none nobody nothing nowhere neither nor cannot without false untrue incorrect".split()
)
_NO_NEGATION_BEFORE = frozenset(("only", "just", "merely"))  # "not only" asserts
_CUE_REACH = 4  # words before the shared ones in which a negator still counts ("it is not true that …")
_WEEKDAYS = frozenset(f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_MAY = re.compile(r"(?<=[a-z0-9,] )May\b|\bMay(?= [0-9])")  # the month, not the verb
_NUMBER_WORDS = {
    word: str(value)
    for value, word in (
        *enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2),
        *zip(range(20, 100, 10), "twenty thirty forty fifty sixty seventy eighty ninety".split(), strict=True),
    )
}
_NUMBER_ENDING = re.compile(r"(?<=[0-9])(?:st|nd|rd|th|am|pm)$")
_SUFFIXES = ("ing", "ies", "ed", "es", "s", "d", "e", "y")
_CLAUSE = re.compile(r"[,;:]|\s[-–—]\s")
