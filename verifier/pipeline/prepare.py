"""The prepare phase: any input form in, ``work/`` and ``rejects/`` out, and the totals known.

Cheap, on the CPU, and idempotent: ``prepare.json`` is written last and is the only mark of completeness (an object
store has no rename). Without it everything starts again from nothing; with it, and the same input, nothing is done.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from verifier.errors import ConfigurationError, InputError, LimitError
from verifier.garbage import rare_collection
from verifier.pipeline.evidence_sets import EvidenceSets
from verifier.pipeline.forms import claim_from_joined
from verifier.pipeline.kinds import FORMS, PASSAGES_OF
from verifier.pipeline.parts import PartWriter
from verifier.pipeline.rows import chunked, cited_claims, claimed_id, parsed_row, printable, wice_claims
from verifier.pipeline.seen import SeenIds
from verifier.pipeline.sources import InputFile, InputSpec, Row, find_input, raw_text, read_rows, source
from verifier.pipeline.storage import delete_files, open_filesystem, scratch_folder
from verifier.pipeline.summary import (
    NAME,
    InputDigest,
    PrepareSummary,
    load_summary,
    refuse_another_input,
    save_summary,
)
from verifier.pipeline.validation import refuse_too_many, shown
from verifier.redaction import without_secrets_in
from verifier.schemas import REJECT_SCHEMA

__all__ = ["InputSpec", "PrepareSummary", "TooManyRejects", "clear", "prepare"]

T = TypeVar("T")
Progress = Callable[[int, int], None]

_MAX_NAMES = 1000  # distinct labels or categories that are counted apart
_MESSAGE = 1000  # characters of a reject's message: it may name an id of any length


class TooManyRejects(LimitError):
    """More rows were rejected than ``max_rejects``; ``work/``, ``rejects/`` and the summary are complete all the same.

    Attributes:
        summary: the totals of the finished prepare phase.
        max_rejects: the limit that was passed.
    """

    def __init__(self, summary: PrepareSummary, max_rejects: int, output_dir: str) -> None:
        codes = ", ".join(f"{code} {count}" for code, count in summary.rejects_by_code.items())
        super().__init__(
            f"{summary.rejects} rows were rejected ({codes}) and input.max_rejects is {max_rejects}: "
            f"see {output_dir}/rejects"
        )
        self.summary = summary
        self.max_rejects = max_rejects


def prepare(
    spec: InputSpec,
    output_dir: str,
    max_evidence: int = 64,
    on_error: Literal["reject", "fail"] = "reject",
    max_rejects: int | None = None,
    chunk_rows: int = 2000,
    part_rows: int = 20_000,
    progress: Progress | None = None,
) -> PrepareSummary:
    """Validate the input of ``spec`` into ``output_dir``; see the module's text.

    Args:
        spec: what to read.
        output_dir: the run directory, a path or URI.
        max_evidence: evidence items that a claim may have.
        on_error: ``fail`` raises ConfigurationError at the first bad row.
        max_rejects: more rejects than this raise TooManyRejects once everything is read (None: no limit).
        chunk_rows: rows validated together, and rows of a parquet row group.
        part_rows: rows of a parquet file, rounded up to whole chunks.
        progress: called after every chunk with the rows read and the rejects so far.
    """
    if spec.form not in FORMS:
        raise ConfigurationError(f"{spec.form!r} is no input form; known are {', '.join(FORMS)}")
    if spec.format not in ("auto", "jsonl", "json", "parquet"):
        raise ConfigurationError(f"{spec.format!r} is no input format; known are auto, jsonl, json, parquet")
    if on_error not in ("reject", "fail"):
        raise ConfigurationError(f"input.on_error is {on_error!r}; known are reject, fail")
    filesystem, root = open_filesystem(output_dir)
    _refuse_output_within(spec, filesystem, root)
    files = find_input(spec)
    summary = load_summary(filesystem, root)
    if summary is not None:
        refuse_another_input(summary, spec, files, max_evidence, output_dir)
    if summary is None or not _is_whole(filesystem, root, summary):
        clear(filesystem, root)
        with ExitStack() as stack:
            run = _Run(spec, files, filesystem, root, max_evidence, on_error, chunk_rows, part_rows, progress, stack)
            with rare_collection():
                run.read()
        summary = run.summary()
        save_summary(filesystem, root, summary)
    if on_error == "fail" and summary.first_reject is not None:
        raise _failed(summary.first_reject)
    if max_rejects is not None and summary.rejects > max_rejects:
        raise TooManyRejects(summary, max_rejects, output_dir)
    return summary


def _refuse_output_within(spec: InputSpec, filesystem: pafs.FileSystem, root: str) -> None:
    for path in filter(str.strip, spec.paths):
        other, folder = open_filesystem(path)
        if type(other) is type(filesystem) and PurePosixPath(root).is_relative_to(folder):
            raise ConfigurationError(f"output.dir is {root}, which lies in {path}, the input: use one outside of it")


def _failed(first_reject: str) -> ConfigurationError:
    return ConfigurationError(f"{first_reject}; repair it, or set input.on_error=reject to go on without such rows")


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}…"


def _is_whole(filesystem: pafs.FileSystem, root: str, summary: PrepareSummary) -> bool:
    try:
        for number in range(summary.work_files):
            with filesystem.open_input_file(f"{root}/work/part-{number:05d}.parquet") as file:
                pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def clear(filesystem: pafs.FileSystem, root: str) -> None:
    """Delete what this phase has written, and nothing else: an output.dir chosen by mistake loses nothing."""
    delete_files(filesystem, root, rf"{NAME}(\.partial)?")
    delete_files(filesystem, f"{root}/work", r"part-\d+\.parquet")
    delete_files(filesystem, f"{root}/rejects", r"prepare-\d+\.parquet")


class _Run:
    """One pass over the input, chunk by chunk."""

    def __init__(
        self,
        spec: InputSpec,
        files: Sequence[InputFile],
        filesystem: pafs.FileSystem,
        root: str,
        max_evidence: int,
        on_error: str,
        chunk_rows: int,
        part_rows: int,
        progress: Progress | None,
        stack: ExitStack,
    ) -> None:
        self.spec, self.files, self.max_evidence, self.on_error = spec, files, max_evidence, on_error
        self.chunk_rows, self.progress = chunk_rows, progress
        self.ignore = frozenset(spec.ignore)
        self.kind, self.build = FORMS[spec.form]
        self.passages_of: Callable[[Any], Any] = PASSAGES_OF.get(spec.form, lambda _: None)
        self.work = stack.enter_context(
            closing(PartWriter(filesystem, f"{root}/work", "part", self.kind.schema, part_rows))
        )
        self.rejects = stack.enter_context(
            closing(PartWriter(filesystem, f"{root}/rejects", "prepare", REJECT_SCHEMA, part_rows))
        )
        self.sets: EvidenceSets | None = None
        if spec.form == "joined":
            folder = stack.enter_context(scratch_folder(filesystem, root))
            self.sets = stack.enter_context(closing(EvidenceSets(f"{folder}/evidence.sqlite")))
        self.seen = SeenIds()
        self.rows_read = self.rows = self.evidence_items = 0
        self.by_code: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()
        self.first_reject: str | None = None
        self.seconds: dict[str, float] = {}

    def read(self) -> None:
        """Read everything, the evidence table first."""
        if self.sets is not None:
            for chunk in self._chunks("evidence"):
                self._write_rejects([self._reject(None, row) for row in self.sets.stage(chunk)])
                self._report()
            self.sets.finish()
        chunks = self._chunks(self.files[0].role)
        while (chunk := self._timed("read", partial(next, chunks, None))) is not None:
            kept, rejected = self._timed("validate", partial(self._taken, chunk))
            self._timed("write", partial(self._write, kept, rejected))
            self._report()

    def _timed(self, name: str, step: Callable[[], T]) -> T:
        started = time.perf_counter()
        done = step()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
        return done

    def _write(self, kept: list[dict[str, Any]], rejected: list[dict[str, Any]]) -> None:
        self.work.write(kept)
        self._write_rejects(rejected)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.rows_read, self.by_code.total())

    def _chunks(self, role: str) -> Iterator[list[Row]]:
        rows = read_rows([file for file in self.files if file.role == role], self.chunk_rows)
        parsed: Iterator[Row] = (parsed_row(row, self.ignore) for row in rows)
        if self.spec.form == "wice":
            parsed = wice_claims(parsed)
        elif self.spec.form == "cited":
            parsed = cited_claims(parsed, self.max_evidence)
        return chunked(parsed, self.chunk_rows)

    def _taken(self, chunk: list[Row]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The rows of ``work/`` and of ``rejects/`` that a chunk gives."""
        kind, sets = self.kind, self.sets
        evidence = sets.attach(chunk, self.max_evidence, self.files) if sets is not None else [None] * len(chunk)
        accepted: list[tuple[int, Row, Any]] = []
        rejected: list[dict[str, Any]] = []
        for row, items in zip(chunk, evidence, strict=True):
            if row.orphan:
                rejected.append(self._reject(None, row))
                continue
            row_id = self.rows_read
            self.rows_read += 1
            try:
                if row.error is not None:
                    raise row.error
                refuse_too_many(self.passages_of(row.value), self.max_evidence)
                item = self.build(row.value) if sets is None else claim_from_joined(row.value, items or [])
                kind.check(item, self.max_evidence)
                accepted.append((row_id, row, item))
            except InputError as error:
                row.error = error
                rejected.append(self._reject(row_id, row))
        names = [kind.identity_of(item) for _, _, item in accepted]
        places = self.seen.add(names, [row.place for _, row, _ in accepted])
        kept: list[dict[str, Any]] = []
        for (row_id, row, item), name, first in zip(accepted, names, places, strict=True):
            if first is None:
                kept.append(kind.row(row_id, item))
                self._count(item)
                continue
            where = source(self.files, first)
            row.error = InputError(
                f"repeated_{kind.identity}", f"{kind.identity} {shown(name)} stands first at {where}"
            )
            rejected.append(self._reject(row_id, row))
        return kept, rejected

    def _count(self, item: Any) -> None:
        self.rows += 1
        self.evidence_items += self.kind.evidence(item)
        for counts, attribute in ((self.labels, "label"), (self.categories, "category")):
            name = getattr(item, attribute, None)
            if name is not None:
                counts[name if name in counts or len(counts) < _MAX_NAMES else "(other)"] += 1

    def _reject(self, row_id: int | None, row: Row) -> dict[str, Any]:
        assert row.error is not None
        return {
            "row_id": row_id,
            "claim_id": claimed_id(self.spec.form, row.value),
            "source": source(self.files, row.place),
            "code": row.error.code,
            "message": printable(_cut(str(row.error))),
            "raw": raw_text(row),
            "place": row.place,
        }

    def _write_rejects(self, rejected: list[dict[str, Any]]) -> None:
        rejected.sort(key=lambda reject: reject.pop("place"))  # repeated ids are found last
        if rejected and self.first_reject is None:
            first = rejected[0]
            self.first_reject = f"{first['source']}: {first['message']} ({first['code']})"
        if rejected and self.on_error == "fail":
            raise _failed(self.first_reject or "")
        self.by_code.update(reject["code"] for reject in rejected)
        self.rejects.write(rejected)

    def summary(self) -> PrepareSummary:
        """The totals, once everything is read and closed."""
        inputs = tuple(InputDigest(f.role, without_secrets_in(f.path), f.kind, f.sha256, f.size) for f in self.files)
        return PrepareSummary(
            form=self.spec.form,
            max_evidence=self.max_evidence,
            ignore=tuple(self.spec.ignore),
            rows_read=self.rows_read,
            rows=self.rows,
            evidence_items=self.evidence_items,
            rejects=self.by_code.total(),
            rejects_by_code=dict(sorted(self.by_code.items())),
            first_reject=self.first_reject,
            labels=dict(sorted(self.labels.items())),
            categories=dict(sorted(self.categories.items())),
            work_files=self.work.parts,
            reject_files=self.rejects.parts,
            total_bytes=sum(file.size for file in self.files),
            inputs=inputs,
            seconds=self.seconds,
        )
