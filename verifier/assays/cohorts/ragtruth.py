"""RAGTruth at the level of responses: does the whole context support every sentence of a response?

The files are those of github.com/ParticleMedia/RAGTruth: ``response.jsonl`` (id, source_id, model, temperature,
labels, split, quality, response) and ``source_info.jsonl`` (source_id, task_type, source, source_info, prompt).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verifier.assays.cohorts.reading import Loaded, at, claim_of, read_objects, unique
from verifier.errors import ConfigurationError, InputError
from verifier.records import Claim, Status
from verifier.text.packing import sentences

ROLES = ("responses", "sources")
_SPLITS = ("train", "test")


def load(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """One claim a response, its sentences the subclaims, the source its only evidence.

    Supported is a response without a labelled span; any span makes it insufficient. Category is the task type,
    document the source. ``options``: ``split`` (train or test), ``task_type`` and ``quality``, each to keep only that.
    Rows are the responses that are kept.
    """
    if options.get("split", "test") not in _SPLITS:
        raise ConfigurationError(f"the option split is {options['split']!r}: use {' or '.join(_SPLITS)}")
    sources = {
        at(paths["sources"], number, _text, row, "source_id"): row for number, row in read_objects(paths["sources"])
    }
    claims = []
    for number, row in read_objects(paths["responses"]):
        source = sources.get(at(paths["responses"], number, _text, row, "source_id"))
        if source is None:
            raise ConfigurationError(f"{paths['responses']}:{number}: no source has the id {row['source_id']!r}")
        row = {**row, "task_type": source.get("task_type")}
        if all(row.get(name) == wanted for name, wanted in options.items()):
            claims.append(at(paths["responses"], number, _claim, row, source))
    return Loaded(len(claims), unique(claims, paths["responses"]))


def context(source: Mapping[str, Any]) -> str:
    """The text that a response rests on: a summary's article, an answer's passages, a table as JSON."""
    info = source.get("source_info")
    if isinstance(info, Mapping):
        passages = info.get("passages")
        return passages if isinstance(passages, str) else json.dumps(info, ensure_ascii=False)
    if not isinstance(info, str):
        raise InputError("missing_source_info", "the source has no source_info")
    return info


def _claim(row: Mapping[str, Any], source: Mapping[str, Any]) -> Claim:
    labels = row.get("labels")
    if not isinstance(labels, list):
        raise InputError("missing_labels", "the response has no list of labels")
    response = _text(row, "response")
    parts = [sentence.strip() for line in response.splitlines() for sentence in sentences(line)]
    return claim_of(
        claim_id=_text(row, "id"),
        claim=response,
        evidence=[{"reference": _text(source, "source_id"), "text": context(source)}],
        label=(Status.INSUFFICIENT if labels else Status.SUPPORTED).value,
        category=_text(source, "task_type"),
        document_id=_text(source, "source_id"),
        subclaims=[part for part in parts if part],
    )


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError("missing_field", f"{name} is missing or no text")
    return value
