"""FEVER-style JSON lines: id, claim, label (SUPPORTS, REFUTES, NOT ENOUGH INFO) and evidence.

Evidence is a list of texts or of objects with ``text``; or, as fever.ai publishes it, a list of evidence sets of
``[annotation, evidence id, page, sentence number]``, whose texts stand in a second file, ``pages``: id and lines, a
text with a line ``number TAB sentence`` (and perhaps more columns) for each sentence.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verifier.assays.cohorts.reading import Loaded, at, claim_of, read_objects, status_of, unique
from verifier.errors import InputError
from verifier.pipeline.validation import shown
from verifier.records import Claim, Status

ROLES = ("claims",)
OPTIONAL_ROLES = ("pages",)
_LABELS = {"SUPPORTS": Status.SUPPORTED, "REFUTES": Status.REFUTED, "NOT ENOUGH INFO": Status.INSUFFICIENT}

_NUMBER = re.compile(r"[0-9]{1,9}")

Sentences = Mapping[tuple[str, int], str]


def load(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """One claim a row; references are ``e1`` and so on, or ``<page>:<sentence>``, each of them once."""
    sentences = _page_sentences(paths["pages"]) if "pages" in paths else {}
    path = paths["claims"]
    claims = [at(path, number, _claim, row, sentences) for number, row in read_objects(path)]
    return Loaded(len(claims), unique(claims, path))


def _claim(row: Mapping[str, Any], sentences: Sentences) -> Claim:
    evidence = row.get("evidence")
    if not isinstance(evidence, list):
        raise InputError("evidence_not_a_list", "evidence is missing or no list")
    return claim_of(
        claim_id=str(row["id"]) if isinstance(row.get("id"), str | int) else None,
        claim=row.get("claim"),
        evidence=[{"reference": name, "text": text} for name, text in _passages(evidence, sentences).items()],
        label=status_of(row.get("label"), _LABELS),
        category=row.get("label"),
    )


def _passages(evidence: list[Any], sentences: Sentences) -> dict[str, str]:
    passages: dict[str, str] = {}
    for number, item in enumerate(evidence, 1):
        if isinstance(item, str):
            passages[f"e{number}"] = item
        elif isinstance(item, Mapping):
            reference = str(item.get("reference") or f"e{number}")
            if reference in passages:
                raise InputError("repeated_reference", f"evidence has the reference {reference!r} twice")
            passages[reference] = item.get("text") or ""
        elif isinstance(item, list):
            passages |= dict(_of_set(item, sentences))
        else:
            raise InputError("unknown_evidence", f"evidence item {number} is neither text, object nor evidence set")
    return passages


def _of_set(evidence_set: list[Any], sentences: Sentences) -> Iterator[tuple[str, str]]:
    for entry in evidence_set:
        if not isinstance(entry, list) or len(entry) < 4:
            raise InputError("unknown_evidence", f"{shown(entry)} is no [annotation, evidence id, page, sentence]")
        page, number = entry[2], entry[3]
        if page is None:  # of a claim without enough information
            continue
        if not isinstance(page, str) or not isinstance(number, int):
            raise InputError("unknown_evidence", f"{shown(page)} and {shown(number)} are no page and sentence number")
        if (page, number) not in sentences:
            raise InputError("unknown_sentence", f"no page has the sentence {page}:{number}; give the file pages")
        yield f"{page}:{number}", sentences[page, number]


def _page_sentences(path: Path) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    for _, page in read_objects(path):
        for line in str(page.get("lines", "")).split("\n"):
            number, tab, rest = line.partition("\t")
            text = rest.split("\t")[0].strip()
            if tab and _NUMBER.fullmatch(number) and text:
                found[str(page.get("id")), int(number)] = text
    return found
