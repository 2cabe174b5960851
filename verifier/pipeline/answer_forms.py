"""The input forms of ``jobs.answers``: a raw JSON object to an Answer or a Passage; bad input raises InputError.

As for claims: null means absent, names that start with ``_`` are the user's own, other unknown names are errors.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from verifier.answers.records import Answer
from verifier.factuality.corpus import Passage
from verifier.fusion.records import DraftClaim, PlanSpan
from verifier.fusion.trace import Generation
from verifier.pipeline.validation import input_error, refuse_depth, refuse_surrogates

_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Filled = Annotated[str, StringConstraints(pattern=r"\S")]
_Range = tuple[int, int]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]  # what a column of 64 bits holds


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class _Span(_Row):
    span_id: _Name
    text: _Filled
    markers: tuple[_Name, ...] = ()
    span_class: Literal["truth", "cache"] = "truth"
    masked: tuple[_Range, ...] = ()


class _Claim(_Row):
    text: str
    draft_span: _Range
    cited_markers: tuple[_Name, ...] = ()


class _Answer(_Row):
    answer_id: _Name
    answer: str
    spans: tuple[_Span, ...] = ()
    claims: tuple[_Claim, ...] | None = None
    scope: _Name | None = None
    category: _Name | None = None
    query_id: _Name | None = None
    request: dict[str, JsonValue] = Field(default_factory=dict)
    prompt: str = ""
    gen: str = ""
    decompose: str = ""
    plan_model: str = ""
    prompt_model: str = ""
    usage_input_tokens: _Count = 0
    usage_output_tokens: _Count = 0
    ts: _Count = 0


class _Passage(_Row):
    passage_id: _Name
    text: _Filled
    kind: _Name = "text"
    scope: _Name | None = None


_NESTED = {"spans": _Span.model_fields, "claims": _Claim.model_fields}
_GENERATION = tuple(name for name in Generation.__dataclass_fields__ if name != "query_id")


def answer_from_answers(value: Mapping[str, Any]) -> Answer:
    """Form ``answers``: one row an answer with its evidence plan; what is not known of its making may be left out.

    The answer may be empty; its text is never stripped, because draft spans count its code points.
    """
    row = _validated(_Answer, value)
    return Answer(
        row.answer_id,
        row.answer,
        tuple(PlanSpan(**dict(span)) for span in row.spans),
        None if row.claims is None else tuple(DraftClaim(**dict(claim)) for claim in row.claims),
        row.scope,
        row.category,
        Generation(row.query_id or row.answer_id, **{name: getattr(row, name) for name in _GENERATION}),
    )


def passage_from_corpus(value: Mapping[str, Any]) -> Passage:
    """Form ``corpus``: one row a passage."""
    row = _validated(_Passage, value)
    return Passage(row.passage_id, row.text, row.kind, row.scope)


def _validated(model: type[_Row], value: Mapping[str, Any]) -> Any:
    refuse_depth(value)
    try:
        return model.model_validate(_public(value))
    except pydantic.ValidationError as error:
        raise input_error(error, model.model_fields, nested=_NESTED) from None


def _public(value: Any, path: str = "") -> Any:
    """The value without private and absent fields, lists as the tuples that strict validation wants."""
    if isinstance(value, str):
        refuse_surrogates(path, value)
    elif isinstance(value, list):
        return tuple(_public(item, path) for item in value)
    elif path == "request":  # anybody's JSON: left as it is
        refuse_surrogates(path, json.dumps(value, ensure_ascii=False, default=str))
    elif isinstance(value, Mapping):
        kept = {name: field for name, field in value.items() if field is not None and not name.startswith("_")}
        for name in kept:
            refuse_surrogates("a field name", name)
        return {name: _public(field, path or name) for name, field in kept.items()}
    return value
