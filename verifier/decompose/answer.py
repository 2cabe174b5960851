"""What a model's answer says about a draft: the JSON list of claims that was asked for, or nothing."""

import re
from typing import Annotated

import pydantic
from pydantic import BaseModel, Field, StringConstraints, TypeAdapter

from verifier.errors import InputError
from verifier.fusion.records import DraftClaim, check_range

_FENCE = re.compile(r"```(?:json)?\s(.*)```", re.DOTALL | re.IGNORECASE)
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class DecomposeError(ValueError):
    """An answer, or every answer to a draft, that holds no list of claims; the message is one sentence's worth."""


class _AnsweredClaim(BaseModel):
    text: _Text = Field(alias="claimText")
    span: tuple[int, int] = Field(alias="draftSpan")
    markers: tuple[_Text, ...] = Field(alias="citedMarkers")


_CLAIMS = TypeAdapter(list[_AnsweredClaim])


def parse_claims(answer: str, draft: str) -> tuple[DraftClaim, ...]:
    """The claims of an answer ``[{"claimText": …, "draftSpan": [start, end], "citedMarkers": ["S1"]}, …]``.

    The list may stand in a code fence, with or without the word json; nothing else may stand around it. Draft spans
    are half-open, in code points, not empty and inside of ``draft``; those of several claims may overlap. A marker
    that is named twice counts once. Raises DecomposeError for anything else, and then no claim is taken.

    >>> parse_claims('[{"claimText": "Oslo is old", "draftSpan": [0, 12], "citedMarkers": ["S2"]}]', "Oslo is old.")
    (DraftClaim(text='Oslo is old', draft_span=(0, 12), cited_markers=('S2',)),)
    """
    stripped = answer.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        claims = _CLAIMS.validate_json(fenced[1] if fenced else stripped, strict=True)
    except pydantic.ValidationError as error:
        raise DecomposeError(_problem(error)) from None
    for number, claim in enumerate(claims, 1):
        try:
            check_range(claim.span, f"claim {number}", len(draft))
        except InputError as error:
            raise DecomposeError(str(error)) from None
    return tuple(DraftClaim(claim.text, claim.span, tuple(dict.fromkeys(claim.markers))) for claim in claims)


def _problem(error: pydantic.ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if not first["loc"]:
        return "the answer is not the JSON list that was asked for"
    number, *path = first["loc"]
    where = ".".join(str(part) for part in path)
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"claim {int(number) + 1} of the answer is not as asked for: {f'{where}: ' if where else ''}{message}"
