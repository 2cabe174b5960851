"""What the rows of an input form become: claims, answers or passages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from verifier.answers.records import check_answer
from verifier.answers.schemas import ANSWER_SCHEMA, PASSAGE_SCHEMA, answer_row, passage_row
from verifier.pipeline.answer_forms import answer_from_answers, passage_from_corpus
from verifier.pipeline.forms import (
    claim_from_bundle,
    claim_from_case,
    claim_from_claims,
    claim_from_wice,
)
from verifier.records import check_evidence
from verifier.schemas import WORK_SCHEMA, work_row


@dataclass(frozen=True)
class Kind:
    """One kind of rows.

    Attributes:
        identity: the input field that must be unique.
        identity_of: its value of an item.
        schema: of ``work/``.
        row: a row_id and an item to a row of ``schema``.
        check: raises InputError for an item that cannot be used; the number is the evidence items it may have.
        evidence: how many evidence items it has.
    """

    identity: str
    identity_of: Callable[[Any], str]
    schema: pa.Schema
    row: Callable[[int, Any], dict[str, Any]]
    check: Callable[[Any, int], None]
    evidence: Callable[[Any], int]


CLAIMS = Kind(
    "claim_id", lambda claim: claim.claim_id, WORK_SCHEMA, work_row, check_evidence, lambda claim: len(claim.evidence)
)
ANSWERS = Kind(
    "answer_id",
    lambda answer: answer.answer_id,
    ANSWER_SCHEMA,
    answer_row,
    lambda answer, _: check_answer(answer),
    lambda answer: len(answer.spans),
)
PASSAGES = Kind(
    "passage_id", lambda passage: passage.id, PASSAGE_SCHEMA, passage_row, lambda passage, _: None, lambda passage: 0
)

FORMS: dict[str, tuple[Kind, Callable[[Any], Any]]] = {
    "claims": (CLAIMS, claim_from_claims),
    "wice": (CLAIMS, claim_from_wice),
    "registration": (CLAIMS, claim_from_case),
    "bundle": (CLAIMS, claim_from_bundle),
    "cited": (CLAIMS, lambda claim: claim),
    "joined": (CLAIMS, lambda claim: claim),
    "answers": (ANSWERS, answer_from_answers),
    "corpus": (PASSAGES, passage_from_corpus),
}
"""Form to the kind of its rows, and what makes an item of a raw value."""

PASSAGES_OF: dict[str, Callable[[Any], Any]] = {
    "claims": lambda value: value.get("evidence"),
    "registration": lambda value: value.get("evidence"),
    "wice": lambda variants: variants,
}
"""Form to the part of a raw value that becomes one evidence item each, where the form has such a part."""
