"""Answers whose sentences cite sentences of documents: their types, premises and claims, and who gets to see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from verifier.errors import ConfigurationError, InputError
from verifier.protocol import PairError
from verifier.records import Claim, Evidence, Text

Strictness = Literal["loose", "balanced", "strict", "paranoid"]


@dataclass(frozen=True)
class CitedSentence:
    """A sentence of an answer and the ids of the document sentences that it rests on."""

    text: str
    supporting_sentence_ids: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """A document that answers cite: sentence id to text."""

    doc_id: str
    sentences: Mapping[str, str]


@dataclass(frozen=True)
class VerificationResult:
    """What became of one sentence of an answer.

    Attributes:
        cited_sentence_index: the sentence's position in the answer, from 0.
        claim_text: its text.
        is_supported: whether its score reaches the threshold; never without a score.
        nli_score: support in [0, 1], or None where there is none.
        error: why there is none.
    """

    cited_sentence_index: int
    claim_text: str
    is_supported: bool
    nli_score: float | None
    error: PairError | None = None


def cited_premise(sentence_ids: Sequence[str], documents: Mapping[str, Document]) -> str:
    """The texts of the cited sentences as they stand, in the order of the ids, joined by a space.

    An id is looked up in every document, the first one that has it counts; an id that none has is left out, and an
    id given twice is read twice. Empty where nothing is found.
    """
    found = (
        next((document.sentences[name] for document in documents.values() if name in document.sentences), None)
        for name in sentence_ids
    )
    return " ".join(text for text in found if text is not None)


@dataclass(frozen=True)
class AnswerDecision:
    """Whether an answer goes out, why not, and the positions of its sentences that no evidence was found to support.

    ``unsupported`` sentences have too low a score, ``unscored`` ones have none; a sentence stands in one of the two.
    """

    delivered: bool
    reason: str | None
    unsupported: tuple[int, ...] = ()
    unscored: tuple[int, ...] = ()


def decide_answer(results: Sequence[VerificationResult], strictness: Strictness) -> AnswerDecision:
    """What happens to an answer, from the results of all its sentences.

    - ``loose``: it is delivered whole; verification may be skipped, which gives no results.
    - ``balanced``: the unsupported and the unscored sentences are to be left out of it; it is refused where none is
      left.
    - ``strict`` and ``paranoid``: it is refused when any sentence is unsupported or unscored. They decide alike: they
      are two names for a user to choose a scorer and a threshold by.

    An answer without sentences is delivered. Raises ConfigurationError for another strictness.
    """
    if strictness not in get_args(Strictness):
        raise ConfigurationError(f"the strictness {strictness!r} is unknown: use {', '.join(get_args(Strictness))}")
    unscored = tuple(result.cited_sentence_index for result in results if result.nli_score is None)
    lacking = tuple(result.cited_sentence_index for result in results if not result.is_supported)
    unsupported = tuple(index for index in lacking if index not in unscored)
    refused = {"loose": False, "balanced": bool(results) and len(lacking) == len(results)}.get(
        strictness, bool(lacking)
    )
    reason = _reason(unsupported, unscored, len(results)) if refused else None
    return AnswerDecision(not refused, reason, unsupported, unscored)


def _reason(unsupported: tuple[int, ...], unscored: tuple[int, ...], n: int) -> str:
    parts = [
        f"{len(positions)} of {n} sentences {what} (number {', '.join(str(index + 1) for index in positions)})"
        for positions, what in ((unsupported, "without support"), (unscored, "without a score"))
        if positions
    ]
    return "the answer has " + " and ".join(parts)


_ROW = ConfigDict(frozen=True, extra="forbid")


class SentenceRow(BaseModel):
    """A sentence of a document."""

    model_config = _ROW
    id: Text
    text: Text


class DocumentRow(BaseModel):
    """A document that is cited."""

    model_config = _ROW
    doc_id: Text
    sentences: tuple[SentenceRow, ...]


class CitedRow(BaseModel):
    """A sentence of an answer; without ids it rests on nothing."""

    model_config = _ROW
    text: Text
    supporting_sentence_ids: tuple[Text, ...]


class AnswerRow(BaseModel):
    """A row of the input form ``cited``: an answer with the documents that it cites. All texts are stripped."""

    model_config = _ROW
    answer_id: Text
    sentences: Annotated[tuple[CitedRow, ...], Field(min_length=1)]
    documents: tuple[DocumentRow, ...]


def claims_from_cited(value: Mapping[str, Any]) -> list[Claim]:
    """One claim a sentence of the answer: its evidence is the sentences that it cites, in its order.

    ``claim_id`` is ``<answer_id>#<position from 0>``, ``document_id`` the answer_id, a reference the sentence's id.
    Names that start with ``_`` are ignored. Anything wrong with a row raises InputError: an id that no document has
    (``unknown_sentence_id``), an id, or a document, that stands twice (``repeated_sentence_id``,
    ``repeated_document_id``, ``repeated_reference`` within one sentence's citations), ``empty_answer``, and what is
    missing, empty or of another type.
    """
    row = _validated(value)
    texts: dict[str, str] = {}
    for document in row.documents:
        for sentence in document.sentences:
            if sentence.id in texts:
                raise InputError(
                    "repeated_sentence_id", f"the documents have two sentences with the id {sentence.id!r}"
                )
            texts[sentence.id] = sentence.text
    _refuse_repeats("repeated_document_id", "documents", [document.doc_id for document in row.documents])
    for number, cited in enumerate(row.sentences):
        path = f"sentences[{number}].supporting_sentence_ids"
        _refuse_repeats("repeated_reference", path, cited.supporting_sentence_ids)
        for name in cited.supporting_sentence_ids:
            if name not in texts:
                raise InputError("unknown_sentence_id", f"{path} holds {name!r}, which no document has")
    return [
        Claim(
            claim_id=f"{row.answer_id}#{number}",
            claim=cited.text,
            evidence=tuple(Evidence(name, texts[name]) for name in cited.supporting_sentence_ids),
            document_id=row.answer_id,
        )
        for number, cited in enumerate(row.sentences)
    ]


def _refuse_repeats(code: str, path: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(code, f"{path} has {name!r} twice")
        seen.add(name)


def _validated(value: Mapping[str, Any]) -> AnswerRow:
    try:
        return AnswerRow.model_validate(_public(value))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise _input_error(path, first["type"], first["input"]) from None


def _public(value: Any) -> Any:
    """The value without names that start with ``_``; null means absent."""
    if isinstance(value, Mapping):
        return {
            name: _public(field)
            for name, field in value.items()
            if field is not None and not (isinstance(name, str) and name.startswith("_"))
        }
    return [_public(item) for item in value] if isinstance(value, list | tuple) else value


_WRONG_TYPE = {"string": ("not_a_string", "a string"), "tuple": ("not_a_list", "a list")}
_EMPTY = {"answer_id": "missing_answer_id", "text": "empty_passage", "sentences": "empty_answer"}


def _input_error(path: str, kind: str, value: Any) -> InputError:
    name = path.rpartition(".")[2]
    if kind == "extra_forbidden":
        return InputError("unknown_field", f"{path} is not a field here (names that start with _ are ignored)")
    if kind == "missing":
        return InputError("missing_answer_id" if name == "answer_id" else "missing_field", f"{path} is missing")
    if kind in ("string_too_short", "too_short"):
        in_answer = path.startswith("sentences[") and name == "text"
        return InputError("empty_claim" if in_answer else _EMPTY.get(name, "empty_reference"), f"{path} is empty")
    if kind == "string_unicode":
        return InputError("invalid_utf8", f"{path} holds a lone surrogate and is not text")
    code, wanted = _WRONG_TYPE.get(kind.partition("_")[0], ("not_an_object", "an object"))
    return InputError(code, f"{path or 'the row'} is of the type {type(value).__name__}, not {wanted}")
