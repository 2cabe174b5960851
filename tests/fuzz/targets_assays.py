"""Targets: registrations, ours and published ones, and the loaders of every cohort form."""

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from tests.fuzz import rows
from tests.fuzz.registry import target
from tests.fuzz.strategies import fields, files, json_bytes, leaf, value
from tests.fuzz.strategies import rows as spoilt
from verifier.assays.cohorts.loading import LOADERS
from verifier.assays.public_forms import read_public_registration
from verifier.assays.registration import read_registration
from verifier.errors import ConfigurationError
from verifier.records import VerificationPolicy

SHA = "234bb8c2ca4511ca078e49e07c895a2db61a581d03237e7e1ecb7c48c8510a3e"
_POLICY = VerificationPolicy()

_authored = fields(
    kind=st.just("claim-verification-assay-registration"),
    purpose=rows.filled,
    registered_at=st.just("2026-01-02T03:04:05Z"),
    model=fields(name=rows.names, revision=rows.names),
    protocol=fields(cases=st.lists(rows.cases, max_size=2), config=st.just({"max_group_size": 2}), note=value),
    evaluation=fields(gates=st.just({"supported_correct_min": 1})),
)
_trial = fields(
    dataset=fields(
        name=rows.names,
        sha256=st.just(SHA),
        relative_path=st.sampled_from(["test.jsonl", "../../etc/passwd", "s3://u:p@h/k"]),
        expected_shape=st.just({"rows": 2, "claims": 1, "labels": {"supported": 1}}),
    ),
    model=fields(name=rows.names, revision=rows.names, support_threshold=st.just(0.5)),
    protocol=fields(
        threshold_operator=st.just("strictly_greater_than"),
        variant_aggregation=st.just("maximum_support_probability"),
        task=rows.filled,
        rest=value,
    ),
    quality_gates=st.just({"results": {"claims_evaluated_min": {"required": 1}}}),
)
_ours = st.builds(
    lambda name, protocol: {
        "kind": "claim-verifier-assay-registration",
        "schema_version": 1,
        "name": name,
        "purpose": name,
        "registered_at": "2026-01-02",
        "method": "groups",
        "policy": _POLICY.model_dump(mode="json"),
        "cohort": {
            "name": name,
            "form": "wice",
            "files": {"claims": {"path": name, "sha256": SHA}},
            "options": {},
            "shape": {"rows": 1, "claims": 1, "labels": {}},
            "sampler": None,
            "selected": None,
        },
        "scorer": {"model": _POLICY.model, "revision": "1", "identity": {}, "settings": {}},
        "protocol": protocol,
        "input_limit": None,
        "gates": {"claims_evaluated_min": 1},
        "calibration": None,
        "sealed": False,
        "observed": False,
        "observed_by": [],
        "ledger_head": None,
    },
    rows.filled,
    st.dictionaries(rows.names, value, max_size=2),
)


def _on_disk(content: bytes, read: Any, name: str = "a.json") -> None:
    """Reading ends well or in one sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            read(path)
        except ConfigurationError as error:
            assert str(error)


@target(json_bytes(spoilt(st.one_of(_authored, _trial))))
def published_registrations(content: bytes) -> None:
    _on_disk(content, read_public_registration)


@target(json_bytes(spoilt(_ours)))
def own_registrations(content: bytes) -> None:
    canonical = content
    try:
        document = json.loads(content)
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except (ValueError, RecursionError):
        pass
    _on_disk(content, read_registration)
    _on_disk(canonical, lambda path: read_registration(path).digest())


_fever = fields(
    id=st.sampled_from([1, "a"]),
    claim=rows.filled,
    label=st.sampled_from(["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]),
    evidence=st.one_of(
        st.lists(rows.filled, max_size=2),
        st.lists(fields(reference=rows.names, text=rows.filled), max_size=2),
        st.just([[[1, 2, "page", 0]]]),
    ),
)
_pages = fields(id=st.just("page"), lines=st.sampled_from(["0\tA sentence.\n1\tB.", "²\tx", "9" * 5000 + "\tx"]))
_responses = fields(
    id=rows.names, source_id=st.just("x"), labels=st.just([]), response=rows.filled, split=st.just("test")
)
_sources = fields(
    source_id=st.just("x"),
    task_type=rows.filled,
    source_info=st.one_of(rows.filled, st.dictionaries(rows.names, value, max_size=2)),
)


def _lines(row: Any) -> st.SearchStrategy[bytes]:
    return files(json_bytes(spoilt(row))).map(lambda file: file[1])


_COHORTS = {
    "authored": {"cases": json_bytes(spoilt(_authored))},
    "wice": {"claims": _lines(rows.wice)},
    "wice_subclaims": {"claims": _lines(rows.wice)},
    "ragtruth": {"responses": _lines(_responses), "sources": _lines(_sources)},
    "fever": {"claims": _lines(_fever), "pages": _lines(_pages)},
}


def _cohort(form: str) -> st.SearchStrategy[tuple[str, dict[str, bytes]]]:
    return st.tuples(st.just(form), st.fixed_dictionaries(_COHORTS[form]))


@target(st.sampled_from(sorted(_COHORTS)).flatmap(_cohort))
def cohort_files(data: tuple[str, dict[str, bytes]]) -> None:
    form, contents = data
    with tempfile.TemporaryDirectory() as folder:
        paths = {role: Path(folder) / role for role in contents}
        for role, content in contents.items():
            paths[role].write_bytes(content)
        try:
            LOADERS[form].load(paths, {})
        except ConfigurationError as error:
            assert str(error)


_aggrefact = st.lists(st.tuples(rows.names, rows.filled, rows.filled, st.integers(0, 1)), max_size=3)


@target(st.tuples(_aggrefact, st.integers(0, 7), st.lists(leaf, max_size=3), st.integers(0, 1 << 20)), share=0.4)
def aggrefact_files(data: tuple[list[Any], int, list[Any], int]) -> None:
    found, column, other, cut = data
    names = ("dataset", "doc", "claim", "label")
    table = pl.DataFrame(found, schema=dict(zip(names, [pl.String] * 3 + [pl.Int64], strict=True)), orient="row")
    if column < len(names):
        try:
            spoilt_column = pl.Series(names[column], (other * 3)[: len(table)], strict=False)
            table = table.with_columns(
                spoilt_column if len(spoilt_column) == len(table) else pl.lit([1]).alias("label")
            )
        except (UnicodeEncodeError, OverflowError, pl.exceptions.PolarsError):
            return  # what Polars does not hold
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        try:
            table.write_parquet(path)
        except pl.exceptions.PolarsError:
            return
        if column == 7:
            content = path.read_bytes()
            path.write_bytes(content[: cut % (len(content) + 1)])
        try:
            LOADERS["aggrefact"].load({"claims": path}, {})
        except ConfigurationError as error:
            assert str(error)
