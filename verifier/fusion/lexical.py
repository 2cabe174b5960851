"""Lexical evidence of the fusion matcher: tokens, IDF coverage, the numeric gate, and the fused pair score.

Formulas are those of shared/seeds/fusion-matcher.txt; SPEC.md gives what it leaves out.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import regex

from verifier.errors import VerificationError

DEFAULT_BETA = 0.65
GATED_SCORE_CAP = 0.2

_BORDER = regex.compile(r"\b", regex.WORD | regex.VERSION1)
_ALPHANUMERIC = regex.compile(r"[\p{Alphabetic}\p{N}]")
_DIGIT = regex.compile("[0-9]")
_ATOM_BORDER = regex.compile("[-/:]")
# What Rust's f64 parser accepts of ASCII digits; its inf and nan hold no digit and are left out.
_NUMBER = regex.compile(r"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
# "may" is a month here even as a verb: the seed's table has no context.
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: str(number) for number, name in enumerate(_MONTH_NAMES, start=1)}


def tokenize(text: str) -> list[str]:
    """The words of ``text``: NFC, UAX 29 word borders, each character lower-cased on its own.

    A token holds at least one alphanumeric character; there is no stop list. UAX 29 keeps 500.0 and 1,000
    whole and cuts 2026-03-05 and 10:30 at their marks.

    >>> tokenize("Paid 1,000.50 on 2026-03-05 at 10:30 — can't wait!")
    ['paid', '1,000.50', 'on', '2026', '03', '05', 'at', '10', '30', "can't", 'wait']
    >>> tokenize("ΟΔΟΣ")[0][-1]
    'σ'
    """
    return [token for piece in word_pieces(text) if (token := token_of(piece))]


def word_pieces(text: str) -> list[str]:
    """``text`` after NFC, cut at every UAX 29 word border; nothing is left out."""
    pieces: list[str] = _BORDER.split(unicodedata.normalize("NFC", text))
    return pieces


def token_of(piece: str) -> str:
    """The token of one piece, an empty text where it holds no alphanumeric character."""
    # Whatever isalnum accepts holds one; most pieces are words or spaces and need no search.
    if not piece.isalnum() and (piece.isspace() or not _ALPHANUMERIC.search(piece)):
        return ""
    # str.lower() looks at context for one letter only: a final capital sigma.
    return "".join(map(str.lower, piece)) if "Σ" in piece else piece.lower()


class PlanIdf:
    """IDF over the spans of one plan: idf(t) = ln(1 + N / df(t)), df floored at 1.

    ``spans`` are token lists; a plain text among them is tokenized first. An instance can be called like its
    ``idf`` method.

    >>> idf = PlanIdf([["alpha", "beta"], ["alpha"]])
    >>> round(idf.idf("alpha"), 4), round(idf.idf("beta"), 4), round(idf.idf("unseen"), 4)
    (0.6931, 1.0986, 1.0986)
    """

    def __init__(self, spans: Sequence[Sequence[str]]) -> None:
        self._n = len(spans)
        self._df: Counter[str] = Counter()
        for span in spans:
            self._df.update(set(tokenize(span) if isinstance(span, str) else span))

    def idf(self, token: str) -> float:
        """The weight of ``token``, in nats; a token of no span weighs as one that a single span has."""
        return math.log(1 + self._n / max(self._df[token], 1))

    __call__ = idf


def lexical_coverage(claim_tokens: Sequence[str], span_tokens: Sequence[str], idf: Callable[[str], float]) -> float:
    """How much of the claim's weight the span holds, in [0, 1]: Σ idf·min(count) / Σ idf·count over the claim.

    A multiset coverage: a token needed twice and held once counts half. The span's length does not matter.
    A claim without weight (no tokens, or a plan without spans) has coverage 0.

    >>> idf = PlanIdf([["alpha", "beta", "gamma"]])
    >>> lexical_coverage(["alpha", "beta"], ["alpha", "beta", "gamma"], idf)
    1.0
    >>> lexical_coverage(["beta", "beta"], ["beta", "gamma"], idf), lexical_coverage(["beta"] * 2, ["beta"] * 3, idf)
    (0.5, 1.0)
    """
    held = Counter(span_tokens)
    # Sorted, so that the last bits do not depend on the order of words.
    counts = sorted(Counter(claim_tokens).items())
    weights = [idf(token) for token, _ in counts]
    whole = sum(weight * count for weight, (_, count) in zip(weights, counts, strict=True))
    if whole <= 0:
        return 0.0
    found = sum(weight * min(count, held[token]) for weight, (token, count) in zip(weights, counts, strict=True))
    return found / whole


def numeric_atoms(tokens: Iterable[str]) -> list[str]:
    """The numbers among ``tokens`` in order, each in one canonical decimal form.

    An English month name is its number; a token with an ASCII digit is cut at - / and :, loses its commas,
    and stands when it parses as a 64-bit float.

    >>> numeric_atoms(tokenize("2026-03-05"))
    ['2026', '3', '5']
    >>> numeric_atoms(tokenize("5 March 2026"))
    ['5', '3', '2026']
    >>> numeric_atoms(tokenize('500 500.0 0500 "500" 1,000 1e3 5pm'))
    ['500', '500', '500', '500', '1000', '1000']
    """
    return [atom for token in tokens for atom in atoms_of(token)]


def atoms_of(token: str) -> list[str]:
    """The ``numeric_atoms`` of one token."""
    if token in _MONTHS:
        return [_MONTHS[token]]
    if token.isalpha() or not _DIGIT.search(token):
        return []
    pieces = (piece.replace(",", "") for piece in _ATOM_BORDER.split(token))
    return [_canonical(float(piece)) for piece in pieces if _NUMBER.fullmatch(piece)]


def _canonical(value: float) -> str:
    if math.isinf(value):
        return "inf"
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def numeric_gate_trips(claim_atoms: Iterable[str], span_atoms: Iterable[str]) -> bool:
    """Whether any number of the claim is absent from the span; a claim without numbers never trips it.

    >>> numeric_gate_trips(["500"], ["500", "3"]), numeric_gate_trips(["500", "7"], ["500"])
    (False, True)
    >>> numeric_gate_trips([], ["500"])
    False
    """
    return not set(claim_atoms) <= set(span_atoms)


def fuse(cos: float, lex: float, beta: float = DEFAULT_BETA) -> float:
    """The geometric fusion clamp01(cos)^beta · clamp01(lex)^(1 - beta), in [0, 1].

    ``cos`` is a raw cosine in [-1, 1], ``lex`` a coverage in [0, 1]. A beta of 0 or 1 returns one signal as it
    is. NaN raises VerificationError: it must not become a verdict.

    >>> round(fuse(0.9, 0.5), 4), fuse(-0.3, 1.0), fuse(0.4, 0.7, 0.0), fuse(0.4, 0.7, 1.0)
    (0.7327, 0.0, 0.7, 0.4)
    """
    if math.isnan(cos) or math.isnan(lex) or math.isnan(beta):
        raise VerificationError(f"cosine {cos}, coverage {lex} and beta {beta} must be numbers to be fused")
    cos, lex, beta = _clamp01(cos), _clamp01(lex), _clamp01(beta)
    if beta == 0:
        return lex
    if beta == 1:
        return cos
    return float(cos**beta * lex ** (1 - beta))


def _clamp01(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def pair_score(
    cos: float, lex: float, beta: float = DEFAULT_BETA, gate_tripped: bool = False, cap: float = GATED_SCORE_CAP
) -> float:
    """The fused score of a (claim, span) pair, capped as a whole at ``cap`` when the numeric gate tripped.

    >>> pair_score(1.0, 1.0, 0.65, True), pair_score(1.0, 1.0, 0.65, False), pair_score(0.1, 0.1, 0.65, True)
    (0.2, 1.0, 0.1)
    """
    fused = fuse(cos, lex, beta)
    return min(fused, cap) if gate_tripped else fused
