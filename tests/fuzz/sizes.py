"""Inputs that are made to be large, and what reads them: each gives a size and a function to be timed."""

import gzip
import itertools
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from verifier.decompose.answer import DecomposeError, parse_claims
from verifier.decompose.sentences import claims_of_sentences
from verifier.factuality.corroboration import corroborate
from verifier.fusion import numeric_atoms, redact, tokenize
from verifier.fusion.records import ClaimVerdict
from verifier.fusion.verdicts import Verdict
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.pipeline.summary import PrepareSummary
from verifier.scorers.judgment import read_judgment
from verifier.text.features import TextFeatures
from verifier.text.packing import pack_sentences, sentences
from verifier.text.segments import segment_spans
from verifier.text.windows import split_windows

PROSE = "The ferry did not leave at 09:40, if it was planned; he wants 3.5 tonnes. Is it so? "
TEXTS = {
    "prose": PROSE,
    "one word": "a",
    "spaces": " ",
    "marks and spaces": ".  ",
    "open quotes": '" ',
    "quotes": '. "',
    "brackets": "[",
    "cues": "not if want ",
    "split cues": "no would in provided work rather ",
    "'d": "I'd ",
    "digits": "1.",
    "numbers": "12 -3.5 ",
    "combining marks": "e" + "\u0301" * 9,
    "bidirectional marks": "\u202ea\u202d",
    "nul": "\0",
    "line ends": "a b\r\n",
    "carriage returns": "a b\r",
    "html": "<script>",
    "markers": "[S1] ",
}
"""Patterns that are repeated into one long text."""


def _features(text: str) -> None:
    found = TextFeatures.of([text])[text]
    _ = found.modes, found.negated_clause_tokens, found.tokens, found.has_correction_cue, found.numbers
    _ = found.weekdays, found.months, found.segments_without(255, negation=True)


def _characters(text: str) -> Any:
    places = np.arange(len(text), dtype=np.int64)
    return np.stack([places, places + 1], axis=1)


def _decomposed(text: str) -> None:
    with suppress(DecomposeError):
        parse_claims(f"```json\n{text}```", text)


def _redacted(text: str) -> None:
    redact(text, [ClaimVerdict("x", (n, n + 1), Verdict.UNSUPPORTED) for n in range(0, len(text) - 1, 3)])


_COUNT = itertools.count()  # makes a text another one: a passage that was read is remembered

SCANNERS: dict[str, Callable[[str], Any]] = {
    "text features": _features,
    "segments": segment_spans,
    "windows": lambda text: split_windows(text, _characters, 2000),
    "sentences": lambda text: sum(1 for _ in sentences(text)),
    "chunks": lambda text: pack_sentences(text, 550),
    "decomposition": lambda text: sum(1 for _ in claims_of_sentences(text)),
    "words and numbers": lambda text: numeric_atoms(tokenize(text)),
    "corroboration": lambda text: corroborate(f"{next(_COUNT)} {text}", "The ferry left."),
    "redaction": _redacted,
    "judge's answer": lambda text: read_judgment("{" + text + "}"),
    "decomposer's answer": _decomposed,
}


def _claim(**changes: Any) -> bytes:
    return json.dumps({"claim_id": "c", "claim": "x", "evidence": [], **changes}).encode()


def long_line(size: int) -> bytes:
    """A good row of about ``size`` bytes."""
    return _claim(claim=PROSE * (size // len(PROSE)))


def many_passages(size: int) -> bytes:
    """A claim with ``size`` evidence items."""
    return _claim(evidence=[{"reference": f"r{n}", "text": "t"} for n in range(size)])


def many_fields(size: int) -> bytes:
    """An object with ``size`` names, the last of them twice."""
    inner = ",".join(f'"_{n}":1' for n in range(size))
    return f'{{{inner},"_{size - 1}":1}}'.encode()


def bundle(size: int) -> bytes:
    """A bundle of ``size`` items whose context cites none of them."""
    items = [{"reference": f"r{n}", "text": "t"} for n in range(size)]
    return _claim(evidence=items, context="x " * 10 * size)


def cited(size: int) -> bytes:
    """An answer whose one sentence cites ``size`` sentences."""
    names = [f"s{n}" for n in range(size)]
    sentence = {"text": "t", "supporting_sentence_ids": names}
    documents = [{"doc_id": "d", "sentences": [{"id": name, "text": "t"} for name in names]}]
    return json.dumps({"answer_id": "a", "sentences": [sentence], "documents": documents}).encode()


ROWS: dict[str, tuple[str, Callable[[int], bytes], int]] = {
    "a long line": ("claims", long_line, 1 << 20),
    "many passages": ("claims", many_passages, 50_000),
    "many fields": ("claims", many_fields, 50_000),
    "a bundle": ("bundle", bundle, 20_000),
    "many citations": ("cited", cited, 10_000),
}
"""Name to form, maker of a row, and the first size."""


def prepared(form: str, content: bytes, name: str = "a.jsonl") -> PrepareSummary:
    """What prepare makes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return prepare(InputSpec(form, str(path)), f"{folder}/out")


def bomb(size: int) -> bytes:
    """A gzip file that holds a line of ``size`` MiB between two good rows."""
    megabyte = b"a" * (1 << 20)
    pieces = [gzip.compress(long_line(100) + b'\n{"claim":"'), gzip.compress(megabyte, 9) * size]
    other = _claim(claim_id="d")
    return b"".join([*pieces, gzip.compress(b'"}\n' + other + b"\n")])
