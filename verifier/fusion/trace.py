"""The trace of a verified generation: everything that its verdicts can be derived from again.

``TRACE_SCHEMA`` and the JSON form have the same fields; in Arrow the free-form ``request`` is JSON text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pydantic import TypeAdapter

from verifier.digests import canonical_json, sha256_json, sha256_text
from verifier.fusion.config import FusionConfig
from verifier.fusion.records import ClaimVerdict, Draft, DraftVerdict, PlanSpan

SCORE_MODEL = "v1"
"""Name of the formula with its thresholds; another formula gets another name."""


@dataclass(frozen=True, slots=True)
class TraceModels:
    """What a generation was made and verified with; empty where it is not known, or was not used.

    Attributes:
        gen: wrote the draft.
        decompose: made claims of it.
        embed, embed_revision: embedded claims and spans, all of them; empty where verification was unavailable.
        confirm, confirm_revision: the scorer that was asked on top of the matcher.
        score_model: ``SCORE_MODEL``.
        plan_model, prompt_model: names of what made the plan and the prompt.
    """

    gen: str = ""
    decompose: str = ""
    embed: str = ""
    embed_revision: str = ""
    confirm: str = ""
    confirm_revision: str = ""
    score_model: str = SCORE_MODEL
    plan_model: str = ""
    prompt_model: str = ""


@dataclass(frozen=True, slots=True)
class TracePlan:
    """The evidence plan, in canonical order."""

    spans: tuple[PlanSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """What is known of a draft before it is verified.

    Attributes:
        query_id: the question's name.
        request: the request without secrets, as JSON values.
        prompt: the whole prompt; the trace keeps its sha256.
        gen, decompose, plan_model, prompt_model: see ``TraceModels``.
        usage_input_tokens, usage_output_tokens: of the generation.
        ts: Unix time in milliseconds.
    """

    query_id: str
    request: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    gen: str = ""
    decompose: str = ""
    plan_model: str = ""
    prompt_model: str = ""
    usage_input_tokens: int = 0
    usage_output_tokens: int = 0
    ts: int = 0


@dataclass(frozen=True, slots=True)
class GenerationTrace:
    """One verified generation; never changed once written.

    Attributes:
        kind: ``generation``.
        query_id, request, usage_input_tokens, usage_output_tokens, ts: see ``Generation``.
        plan_hash, prompt_hash: hexadecimal sha256, see ``plan_hash``; of the prompt's text.
        configuration: the fields of ``FusionConfig``, and the thresholds of a scorer that was asked on top.
        draft: as generated, before any redaction.
        claims, verification: see ``DraftVerdict``.
    """

    query_id: str
    request: Mapping[str, Any]
    plan_hash: str
    prompt_hash: str
    models: TraceModels
    configuration: Mapping[str, Any]
    plan: TracePlan
    draft: str
    claims: tuple[ClaimVerdict, ...]
    verification: str
    usage_input_tokens: int
    usage_output_tokens: int
    ts: int
    kind: Literal["generation"] = "generation"

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON values; a range is a list of two numbers."""
        return _TRACE.dump_python(self, mode="json")  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The trace as one line of canonical JSON."""
        return canonical_json(self.to_dict())


def plan_hash(spans: Iterable[PlanSpan]) -> str:
    """Hexadecimal sha256 of the canonical JSON of a plan: the list of its spans, all fields, in order."""
    return sha256_json([asdict(span) for span in spans])


def trace_of(
    draft: Draft,
    verdict: DraftVerdict,
    config: FusionConfig,
    generation: Generation,
    confirm: tuple[str, str] = ("", ""),
) -> GenerationTrace:
    """The trace of a draft and what became of it; ``confirm`` is model and revision of a scorer asked on top."""
    return GenerationTrace(
        query_id=generation.query_id,
        request=generation.request,
        plan_hash=plan_hash(draft.spans),
        prompt_hash=sha256_text(generation.prompt),
        models=TraceModels(
            generation.gen,
            generation.decompose,
            verdict.embed_model,
            verdict.embed_revision,
            *confirm,
            plan_model=generation.plan_model,
            prompt_model=generation.prompt_model,
        ),
        configuration=config.model_dump(mode="json"),
        plan=TracePlan(draft.spans),
        draft=draft.text,
        claims=verdict.claims,
        verification=verdict.verification,
        usage_input_tokens=generation.usage_input_tokens,
        usage_output_tokens=generation.usage_output_tokens,
        ts=generation.ts,
    )


_STRINGS = pa.list_(pa.string())
_RANGE = pa.list_(pa.int64())
_CANDIDATE = pa.struct(
    {
        "span": pa.int64(),
        "span_id": pa.string(),
        "cited": pa.bool_(),
        "cosine": pa.float64(),
        "lexical": pa.float64(),
        "gate_tripped": pa.bool_(),
        "score": pa.float64(),
    }
)
_CLAIM = pa.struct(
    {
        "text": pa.string(),
        "draft_span": _RANGE,
        "verdict": pa.string(),
        "score": pa.float64(),
        "best_span": pa.struct({"index": pa.int64(), "span_id": pa.string()}),
        "candidates_considered": pa.int64(),
        "cited_markers": _STRINGS,
        "numeric_gated": pa.bool_(),
        "unresolved_markers": _STRINGS,
        "candidates": pa.list_(_CANDIDATE),
    }
)
SPAN_TYPE = pa.struct(
    {
        "span_id": pa.string(),
        "text": pa.string(),
        "markers": _STRINGS,
        "span_class": pa.string(),
        "masked": pa.list_(_RANGE),
    }
)
_CONFIGURATION = pa.struct(
    {
        "beta": pa.float64(),
        "candidates_m": pa.int64(),
        "supported": pa.float64(),
        "partial": pa.float64(),
        "cap": pa.float64(),
        "policy": pa.string(),
        "entailment_threshold": pa.float64(),
        "contradiction_threshold": pa.float64(),
    }
)

TRACE_SCHEMA = pa.schema(
    {
        "kind": pa.string(),
        "query_id": pa.string(),
        "request": pa.string(),
        "plan_hash": pa.string(),
        "prompt_hash": pa.string(),
        "models": pa.struct({name: pa.string() for name in TraceModels.__dataclass_fields__}),
        "configuration": _CONFIGURATION,
        "plan": pa.struct({"spans": pa.list_(SPAN_TYPE)}),
        "draft": pa.string(),
        "claims": pa.list_(_CLAIM),
        "verification": pa.string(),
        "usage_input_tokens": pa.int64(),
        "usage_output_tokens": pa.int64(),
        "ts": pa.int64(),
    }
)


def traces_table(traces: Iterable[GenerationTrace]) -> pa.Table:
    """Traces as an Arrow table of ``TRACE_SCHEMA``."""
    rows = [trace.to_dict() for trace in traces]
    return pa.Table.from_pylist([row | {"request": canonical_json(row["request"])} for row in rows], TRACE_SCHEMA)


def read_trace(row: Mapping[str, Any]) -> GenerationTrace:
    """A trace from its JSON form or from a row of ``TRACE_SCHEMA``, equal to the one that was written.

    A malformed one raises ``pydantic.ValidationError`` (a ``ValueError``).
    """
    request, configuration = row.get("request"), row.get("configuration")
    parsed: dict[str, Any] = {"request": _JSON.validate_json(request)} if isinstance(request, str) else {}
    if isinstance(configuration, Mapping):  # in a table a field that a run does not have is null
        parsed["configuration"] = {name: value for name, value in configuration.items() if value is not None}
    return _TRACE.validate_python({**row, **parsed})


_TRACE = TypeAdapter(GenerationTrace)
_JSON = TypeAdapter(dict[str, Any])
