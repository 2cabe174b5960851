"""Raw rows on their way to claims: parsed, grouped, in chunks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from verifier.errors import InputError
from verifier.grounding.cited import claims_from_cited
from verifier.pipeline.forms import wice_id
from verifier.pipeline.sources import RAW_BYTES, Row
from verifier.pipeline.validation import parse_object, shown
from verifier.records import Claim, check_evidence

_ID_FIELDS = {
    "wice": "id",
    "registration": "id",
    "cited": "answer_id",
    "answers": "answer_id",
    "corpus": "passage_id",
}
_CHUNK_BYTES = 64 << 20  # a chunk of long rows ends here, whatever its number of rows


def parsed_row(row: Row, ignore: frozenset[str]) -> Row:
    """The row with its value parsed and the fields of ``ignore`` left out, or with its error filled in."""
    if row.error is not None:
        return row
    try:
        if row.raw is not None:
            row.value = parse_object(row.raw)
        elif not isinstance(row.value, dict):
            raise InputError("not_an_object", f"the row is {shown(row.value)}, not an object")
    except InputError as error:
        row.error = error
        return row
    if ignore:
        row.value = {name: _without(field, ignore) for name, field in row.value.items() if name not in ignore}
    return row


def _without(field: Any, ignore: frozenset[str]) -> Any:
    if not isinstance(field, list):
        return field
    return [
        {name: value for name, value in item.items() if name not in ignore} if isinstance(item, dict) else item
        for item in field
    ]


def wice_claims(rows: Iterable[Row]) -> Iterator[Row]:
    """Parsed WiCE lines grouped by claim, in order of first appearance; the file is held in memory (it is small)."""
    ordered: list[Row] = []
    groups: dict[str, Row] = {}
    for row in rows:
        try:
            if row.error is not None:
                raise row.error
            identity = wice_id(row.value)
        except InputError as error:
            row.error, row.orphan = error, True
            ordered.append(row)
            continue
        group = groups.get(identity)
        if group is None:
            groups[identity] = group = Row(row.place, row.raw, [row.value])
            ordered.append(group)
            continue
        group.value.append(row.value)
        if row.raw is not None and group.raw is not None and len(group.raw) <= RAW_BYTES:
            group.raw += b"\n" + row.raw
    yield from ordered


def cited_claims(rows: Iterable[Row], max_evidence: int) -> Iterator[Row]:
    """Parsed answers, a row for each of their sentences with its Claim; a bad answer stays one row with its error.

    One bad sentence makes a bad answer: an answer must not be judged without some of its sentences.
    """
    seen: set[str] = set()
    for row in rows:
        try:
            if row.error is not None:
                raise row.error
            claims = claims_from_cited(row.value)
            for claim in claims:
                check_evidence(claim, max_evidence)
            answer_id = str(claims[0].document_id)
            if answer_id in seen:
                raise InputError("repeated_answer_id", f"answer_id {shown(answer_id)} stands in an earlier row too")
        except InputError as error:
            row.error = error
            yield row
            continue
        seen.add(answer_id)
        yield from (Row(row.place, row.raw, claim) for claim in claims)


def chunked(rows: Iterable[Row], chunk_rows: int) -> Iterator[list[Row]]:
    """Rows in lists of ``chunk_rows``, fewer where they are long, so that memory is bounded by bytes too."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += row.size if row.raw is None else len(row.raw)
        if len(chunk) >= chunk_rows or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def claimed_id(form: str, value: Any) -> str | None:
    """The id of a rejected row, where it has one that is a string."""
    if form == "wice":
        value = value[0].get("meta") if isinstance(value, list) else None
    if isinstance(value, Claim):
        return value.claim_id
    name = value.get(_ID_FIELDS.get(form, "claim_id")) if isinstance(value, Mapping) else None
    return printable(name.strip()[:1024]) if isinstance(name, str) else None


def printable(text: str) -> str:
    """Text that can be stored: lone surrogates as backslash escapes."""
    return text.encode(errors="backslashreplace").decode()
