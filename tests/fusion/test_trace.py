"""The trace: complete, the same in JSON and in Arrow, and read back as it was written."""

import doctest
import importlib
import json
from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.fusion.drafts import WordEmbedder, cited, draft_of, drafts
from verifier.digests import sha256_text
from verifier.fusion import Draft, FusionConfig, PlanSpan, match_drafts, pair_score
from verifier.fusion.trace import (
    TRACE_SCHEMA,
    Generation,
    GenerationTrace,
    TraceModels,
    plan_hash,
    read_trace,
    trace_of,
    traces_table,
)

GENERATION = Generation(
    "q-1",
    {"question": "When?", "k": 3, "nested": [None, {"é": 0.5}]},
    "Answer from [S1].",
    *("writer", "sentences", "planner", "prompt-2"),
    usage_input_tokens=120,
    usage_output_tokens=34,
    ts=1_780_000_000_000,
)
ERASED = PlanSpan("p3", "the port is ██", ("port",), masked=((12, 14),))
DRAFT = draft_of([cited("the port is 8080", "S1", "S9")], ["the port is 8080", "port 9", ERASED])
CONFIG = FusionConfig(policy="redact", candidates_m=1)


def trace(draft: Draft = DRAFT, embedder: Any = None) -> GenerationTrace:
    (verdict,) = match_drafts([draft], embedder or WordEmbedder(), CONFIG)
    return trace_of(draft, verdict, CONFIG, GENERATION)


def test_a_trace_has_all_that_its_scores_can_be_derived_from() -> None:
    written = json.loads(trace().to_json())
    assert written["kind"] == "generation" and written["verification"] == "verified"
    assert written["draft"] == DRAFT.text and written["request"] == GENERATION.request
    assert written["prompt_hash"] == sha256_text("Answer from [S1].")
    assert written["plan_hash"] == plan_hash(DRAFT.spans)
    assert written["configuration"] == CONFIG.model_dump()
    assert written["models"] == {
        "gen": "writer",
        "decompose": "sentences",
        "embed": "words",
        "embed_revision": "1",
        "confirm": "",
        "confirm_revision": "",
        "score_model": "v1",
        "plan_model": "planner",
        "prompt_model": "prompt-2",
    }
    assert [span["masked"] for span in written["plan"]["spans"]] == [[], [], [[12, 14]]]
    (claim,) = written["claims"]
    assert (claim["draft_span"], claim["verdict"], claim["best_span"]["span_id"]) == ([0, 16], "supported", "p1")
    assert claim["unresolved_markers"] == ["S9"] and claim["candidates_considered"] == 1
    (candidate,) = claim["candidates"]
    rebuilt = pair_score(candidate["cosine"], candidate["lexical"], 0.65, candidate["gate_tripped"], 0.2)
    assert candidate["score"] == claim["score"] == pytest.approx(rebuilt, abs=1e-12)
    assert "\n" not in trace().to_json(), "one line of a JSON lines file"


def test_an_unavailable_verification_has_no_embedder_and_no_verdicts() -> None:
    (verdict,) = match_drafts([DRAFT], None, CONFIG)
    written = trace_of(DRAFT, verdict, CONFIG, GENERATION)
    assert written.verification == "unavailable: no embedder is registered"
    assert (written.claims, written.models.embed, written.models.embed_revision) == ((), "", "")
    assert read_trace(traces_table([written]).to_pylist()[0]) == written


@given(drafts())
def test_it_is_read_back_from_json_and_from_parquet(draft: Draft) -> None:
    written = trace(draft)
    assert read_trace(json.loads(written.to_json())) == written
    table, file = traces_table([written, written]), BytesIO()
    assert table.schema == TRACE_SCHEMA
    pq.write_table(table, file)
    assert [read_trace(row) for row in pq.read_table(file).to_pylist()] == [written, written]


def test_the_schema_has_every_field_of_the_record() -> None:
    row = trace().to_dict()
    assert list(TRACE_SCHEMA.names) == [*row] or set(TRACE_SCHEMA.names) == set(row)
    (back,) = traces_table([trace()]).to_pylist()
    configuration = {name: value for name, value in back["configuration"].items() if value is not None}
    assert {**back, "request": json.loads(back["request"]), "configuration": configuration} == row
    assert traces_table([]).schema == TRACE_SCHEMA
    assert [field.name for field in TRACE_SCHEMA.field("models").type] == list(TraceModels.__dataclass_fields__)


def test_the_plan_s_hash_is_of_all_its_fields_in_order() -> None:
    first, second = PlanSpan("a", "text"), PlanSpan("b", "more")
    plans = [(first, second), (second, first), (first,), (), (first, replace(second, masked=((0, 1),)))]
    plans += [(first, replace(second, span_class="cache")), (first, replace(second, markers=("m",)))]
    assert len({plan_hash(plan) for plan in plans}) == len(plans)
    assert plan_hash([first, second]) == plan_hash((first, second))


def test_a_malformed_trace_is_refused() -> None:
    row = trace().to_dict()
    for wrong in ({"claims": [{"text": "a"}]}, {"kind": "query"}, {"ts": "soon"}, {"request": "no json"}):
        with pytest.raises(ValidationError):
            read_trace({**row, **wrong})


@pytest.mark.parametrize("name", ["verdicts", "redaction"])
def test_the_examples_of_the_docstrings_hold(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"verifier.fusion.{name}"))
    assert results.attempted > 0 and results.failed == 0
