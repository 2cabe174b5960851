"""The input forms: one function a form, from a raw JSON object to a Claim; bad input raises InputError.

Everywhere: null means absent; names that start with ``_`` are the user's own and ignored; any other unknown name is
an error, because a mistyped ``requires_complete_set`` would otherwise change a decision in silence.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.validation import (
    CLAIM_FIELDS,
    EVIDENCE_FIELDS,
    evidence_items,
    refuse_unknown,
    required_text,
    shown,
    validated_claim,
    validated_evidence,
)
from verifier.records import Claim, Evidence, Status

WICE_NAMESPACE = uuid.UUID("5211a7d2-cf39-4c7c-8bbc-4f762448d294")
WICE_LABELS = ("supported", "partially_supported", "not_supported")

JOINED_FIELDS = (*(name for name in CLAIM_FIELDS if name != "evidence"), "evidence_set")
EVIDENCE_TABLE_FIELDS = ("evidence_set", *EVIDENCE_FIELDS)
_BUNDLE_FIELDS = (*CLAIM_FIELDS, "context", "evidence_refs")
_BUNDLE_EVIDENCE_FIELDS = (*EVIDENCE_FIELDS, "rendered_text")
_SEARCHED = 1 << 24  # characters that are searched reference by reference: more are searched for all at once
_WICE_FIELDS = ("label", "claim", "evidence", "meta")
_CASE_FIELDS = ("id", "category", "claim", "expected_status", "evidence", "requires_complete_set", "document_id")


def claim_from_claims(value: Mapping[str, Any]) -> Claim:
    """Form ``claims``: one row a claim, with the fields of Claim and its evidence list (may be empty, not absent)."""
    return validated_claim(value)


def evidence_set_of(value: Mapping[str, Any]) -> str:
    """The ``evidence_set`` of a row of either table of form ``joined``; absent, null and blank are errors.

    A claim that is meant to have no evidence belongs to form ``claims``, with an empty list.
    """
    return required_text(value, "evidence_set")


def claim_from_joined(value: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]) -> Claim:
    """Form ``joined``: a row of the claims table with the evidence of its ``evidence_set``, in that table's order."""
    refuse_unknown(value, JOINED_FIELDS)
    fields = {name: field for name, field in value.items() if name != "evidence_set"}
    return validated_claim(fields | {"evidence": evidence}, JOINED_FIELDS)


def evidence_from_table(value: Mapping[str, Any]) -> tuple[str, Evidence]:
    """A row of the evidence table of form ``joined``: its set and its evidence item."""
    name = evidence_set_of(value)
    fields = {key: field for key, field in value.items() if key != "evidence_set"}
    return name, validated_evidence(fields, EVIDENCE_TABLE_FIELDS)


def wice_id(value: Mapping[str, Any]) -> str:
    """The ``meta.id`` that groups the lines of a WiCE file into claims."""
    meta = value.get("meta")
    return required_text(meta if isinstance(meta, dict) else {}, "id", "meta.id")


def claim_from_wice(variants: Sequence[Mapping[str, Any]]) -> Claim:
    """Form ``wice``: the lines with one ``meta.id`` are a claim, each line one evidence item.

    Item k (from 1, in file order) is ``<id>:oracle:<k>``: the line's non-blank sentences joined by newlines. Label
    supported stays; the two others are insufficient. The original label is the category, so nothing is lost.
    """
    identity = wice_id(variants[0])
    evidence = []
    for number, variant in enumerate(variants, 1):
        refuse_unknown(variant, _WICE_FIELDS)
        if (variant.get("claim"), variant.get("label")) != (variants[0].get("claim"), variants[0].get("label")):
            raise InputError("inconsistent_variants", f"line {number} of {identity!r} has another claim or label")
        evidence.append(
            {
                "reference": f"{identity}:oracle:{number}",
                "text": _wice_text(variant, number),
                "memory_id": uuid.uuid5(WICE_NAMESPACE, f"{identity}:{number}"),
            }
        )
    label = variants[0].get("label")
    if label is not None and label not in WICE_LABELS:
        raise InputError("unknown_enum_value", f"label is {shown(label)}; known are {', '.join(WICE_LABELS)}")
    fields = {"claim_id": identity, "claim": variants[0].get("claim"), "document_id": identity, "category": label}
    status = None if label is None else Status.SUPPORTED if label == "supported" else Status.INSUFFICIENT
    return validated_claim(fields | {"label": status and status.value, "evidence": evidence})


def _wice_text(variant: Mapping[str, Any], number: int) -> str:
    sentences = variant.get("evidence")
    if sentences is None:
        raise InputError("missing_evidence_field", f"evidence of line {number} is missing")
    if not isinstance(sentences, (list, tuple)):
        raise InputError("evidence_not_a_list", f"evidence of line {number} is {shown(sentences)}, not a list")
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise InputError("not_a_string", f"evidence of line {number} holds {shown(sentence)}, not a string")
    text = "\n".join(sentence for sentence in sentences if sentence.strip())
    if not text:
        raise InputError("empty_passage", f"evidence of line {number} has no sentence with text")
    return text


def registered_cases(document: Any, name: str) -> list[Any]:
    """The cases of a registered assay (``protocol.cases``); a file without them is a ConfigurationError."""
    protocol = document.get("protocol") if isinstance(document, dict) else None
    cases = protocol.get("cases") if isinstance(protocol, dict) else None
    if not isinstance(cases, list):
        raise ConfigurationError(f"{name} is not a registered assay: it has no list protocol.cases")
    return cases


def claim_from_case(value: Mapping[str, Any]) -> Claim:
    """Form ``registration``: a case of a registered assay; ``id`` is the claim_id, ``expected_status`` the label."""
    refuse_unknown(value, _CASE_FIELDS)
    fields = {name: field for name, field in value.items() if name not in ("id", "expected_status")}
    status = value.get("expected_status")
    if status is not None and status not in list(Status):
        raise InputError("unknown_enum_value", f"expected_status is {shown(status)}; known are {', '.join(Status)}")
    return validated_claim(fields | {"claim_id": required_text(value, "id"), "label": status}, _CASE_FIELDS)


def occurs(reference: str, context: str) -> bool:
    """Whether a rendered context cites a reference.

    It does when the context holds, character for character and in the same case, ``"reference"`` (in straight double
    quotes, so also as the value of ``"id":"reference"``, with or without white space after the colon) or
    ``[reference]``. Nothing is unescaped; ``[a, b]``, ``(a)``, ``[ a ]`` and the bare word cite nothing.
    """
    return any(form in context for form in _citations(reference))


def _citations(reference: str) -> tuple[str, str]:
    return f'"{reference}"', f"[{reference}]"


def _cited(references: Sequence[str], context: str) -> set[str]:
    """The references that occur in a context, in time that is linear in the size of both together."""
    if len(references) * len(context) <= _SEARCHED:
        return {reference for reference in references if occurs(reference, context)}
    forms = [form for reference in references for form in _citations(reference)]
    found = set(pl.Series([context]).str.extract_many(forms, overlapping=True).explode().unique().to_list())
    return {reference for reference in references if not found.isdisjoint(_citations(reference))}


def claim_from_bundle(value: Mapping[str, Any]) -> Claim:
    """Form ``bundle``: a claim, the ``context`` that a reader saw, and the memories that were packed into it.

    Only evidence whose reference occurs in the context (see ``occurs``) is used, in the row's order; none is an error.
    An item's ``rendered_text`` stands in place of its ``text`` where it has one: hidden text is never verified.
    ``evidence_refs`` narrows and orders what is used; a reference that is not cited is an error, and an empty list
    leaves a claim without evidence. An item that is not used needs a reference and is not validated further.
    """
    refuse_unknown(value, _BUNDLE_FIELDS)
    context = required_text(value, "context")
    items = evidence_items(value)
    references = [required_text(item, "reference", f"evidence[{n}].reference") for n, item in enumerate(items)]
    found = _cited(references, context)
    cited = [(reference, n) for n, reference in enumerate(references) if reference in found]
    if not cited:
        raise InputError("no_cited_evidence", "context cites no reference of the evidence")
    wanted = value.get("evidence_refs")
    used = [n for _, n in cited] if wanted is None else _narrowed(cited, wanted)
    evidence = [validated_evidence(_as_rendered(items[n]), _BUNDLE_EVIDENCE_FIELDS, f"evidence[{n}].") for n in used]
    fields = {name: field for name, field in value.items() if name not in ("context", "evidence_refs", "evidence")}
    return validated_claim(fields, _BUNDLE_FIELDS, evidence)


def _narrowed(cited: Sequence[tuple[str, int]], wanted: Any) -> list[int]:
    if not isinstance(wanted, (list, tuple)):
        raise InputError("evidence_refs_not_a_list", f"evidence_refs is {shown(wanted)}, not a list of references")
    places: dict[str, list[int]] = {}
    for name, n in cited:
        places.setdefault(name, []).append(n)
    for reference in wanted:
        if not isinstance(reference, str):
            raise InputError("not_a_string", f"evidence_refs holds {shown(reference)}, not a string")
        if reference.strip() not in places:
            raise InputError("unknown_evidence_ref", f"evidence_refs holds {shown(reference)}, which is not cited")
    # every item with the name, so that a repeated reference in the evidence is refused and not chosen from
    return [n for reference in wanted for n in places[reference.strip()]]


def _as_rendered(item: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: field for name, field in item.items() if name != "rendered_text"}
    return fields if item.get("rendered_text") is None else fields | {"text": item["rendered_text"]}
