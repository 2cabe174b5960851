"""What a finished prepare phase says of itself: ``prepare.json``, its mark of completeness."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Literal

import pydantic
from pyarrow import fs as pafs
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from verifier.errors import ConfigurationError
from verifier.pipeline.sources import InputFile, InputSpec, hash_file
from verifier.pipeline.storage import read_text, write_text

NAME = "prepare.json"


@dataclass(frozen=True)
class InputDigest:
    """One input file as it was read: ``sha256`` and ``bytes`` of the file as stored (compressed, if it is)."""

    role: str
    path: str
    kind: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class PrepareSummary:
    """The totals of a prepare phase.

    Attributes:
        rows_read: rows read, rejected ones included (orphan lines and evidence-table lines are not rows).
        rows: rows of ``work/``: claims, answers or passages.
        evidence_items: evidence items of those claims, spans of those answers.
        rejects: rows of ``rejects/``.
        rejects_by_code: how many for every code.
        first_reject: place, code and message of the first one, as one sentence.
        labels: how many rows for every label (the first thousand labels; others count as ``(other)``).
        categories: the same for categories.
        work_files: parquet files in ``work/``.
        total_bytes: size of the input files.
        seconds: spent on ``read`` (and parsing), ``validate`` and ``write``; empty where it was done before.
    """

    form: str
    max_evidence: int
    ignore: tuple[str, ...]
    rows_read: int
    rows: int
    evidence_items: int
    rejects: int
    rejects_by_code: dict[str, int]
    first_reject: str | None
    labels: dict[str, int]
    categories: dict[str, int]
    work_files: int
    reject_files: int
    total_bytes: int
    inputs: tuple[InputDigest, ...]
    version: Literal[1] = 1
    seconds: Annotated[dict[str, float], Field(exclude=True)] = field(default_factory=dict, compare=False)


_SUMMARY = TypeAdapter(PrepareSummary)


def load_summary(filesystem: pafs.FileSystem, root: str) -> PrepareSummary | None:
    """The summary of a run directory whose prepare phase is complete, else None."""
    text = read_text(filesystem, f"{root}/{NAME}")
    if text is None:
        return None
    try:
        return _SUMMARY.validate_json(text)
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"{root}/{NAME} is damaged or of another version: use another output.dir") from error


def save_summary(filesystem: pafs.FileSystem, root: str, summary: PrepareSummary) -> None:
    """Write ``prepare.json``: from here on the prepare phase is complete."""
    write_text(filesystem, f"{root}/{NAME}", _SUMMARY.dump_json(summary, indent=2).decode() + "\n")


def refuse_another_input(
    recorded: PrepareSummary, spec: InputSpec, files: Sequence[InputFile], max_evidence: int, output_dir: str
) -> None:
    """Raise ConfigurationError where a run directory was prepared from something else; hashes the input files."""
    before: dict[str, object] = {
        "form": recorded.form,
        "max_evidence": recorded.max_evidence,
        "ignored columns": tuple(recorded.ignore),
        "number of files": len(recorded.inputs),
    }
    now: dict[str, object] = {
        "form": spec.form,
        "max_evidence": max_evidence,
        "ignored columns": tuple(spec.ignore),
        "number of files": len(files),
    }
    for name, value in before.items():
        if value != now[name]:
            difference = f"its {name} was {value}, now it is {now[name]}"
            raise ConfigurationError(
                f"{output_dir} was prepared from another input: {difference}: use another output.dir (of a corpus:"
                " retrieval.index)"
            )
    for file, known in zip(files, recorded.inputs, strict=True):
        try:
            hash_file(file)
        except OSError as error:
            raise ConfigurationError(f"{file.path} cannot be read: {error}") from error
        if (file.role, file.kind, file.sha256) != (known.role, known.kind, known.sha256):
            raise ConfigurationError(
                f"{output_dir} was prepared from another input: {file.path} differs from what was read as "
                f"{known.path}: use another output.dir (of a corpus: retrieval.index)"
            )
