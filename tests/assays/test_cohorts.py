"""The loaders: each form as its publishers write it, and samples that anyone can draw again."""

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.assays.assay_files import write_rows
from tests.shared import SHARED, needs_shared
from verifier.assays.cohorts.identity import identity_of
from verifier.assays.cohorts.loading import LOADERS, check_shape, load_all, shape_of
from verifier.assays.cohorts.reading import Loaded
from verifier.assays.cohorts.sampling import first_by_digest, sample
from verifier.assays.cohorts.wice import parent_id, statuses_of_parents
from verifier.assays.cohorts.writing import write_claims
from verifier.assays.registration import Cohort, CohortFile, Sampler, Shape
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError
from verifier.pipeline.forms import claim_from_claims
from verifier.records import Claim, Evidence

WICE_TEST = "234bb8c2ca4511ca078e49e07c895a2db61a581d03237e7e1ecb7c48c8510a3e"


def load(form: str, options: dict[str, str] | None = None, **paths: Path) -> Loaded:
    files = {role: CohortFile(path=str(path), sha256=sha256_file(path)) for role, path in paths.items()}
    shape = Shape(claims=0, labels={})
    return load_all(Cohort(name="c", form=form, files=files, shape=shape, options=options or {}))  # type: ignore[arg-type]


def ragtruth(tmp_path: Path) -> dict[str, Path]:
    sources = [
        {"source_id": "1", "task_type": "Summary", "source": "CNN/DM", "source_info": "The bridge opened. It is long."},
        {
            "source_id": "2",
            "task_type": "QA",
            "source": "MARCO",
            "source_info": {"question": "How?", "passages": "passage 1:Boil it.\n\npassage 2:Peel it.\n\n"},
        },
        {"source_id": "3", "task_type": "Data2txt", "source": "Yelp", "source_info": {"name": "Café", "stars": 3.0}},
    ]
    span = {"start": 0, "end": 6, "text": "Subway", "label_type": "Evident Conflict", "meta": "", "due_to_null": False}
    responses = [
        {
            "id": "10",
            "source_id": "1",
            "labels": [],
            "split": "train",
            "response": "It opened. It is long.\nIt is a bridge.",
        },
        {"id": "11", "source_id": "2", "labels": [span], "split": "test", "response": "Bake it."},
        {"id": "12", "source_id": "3", "labels": [], "split": "test", "response": "Café has three stars."},
    ]
    other = {"model": "gpt-4-0613", "temperature": 0.7, "quality": "good"}
    return {
        "responses": write_rows(tmp_path / "response.jsonl", [row | other for row in responses]),
        "sources": write_rows(tmp_path / "source_info.jsonl", [row | {"prompt": "…"} for row in sources]),
    }


def test_ragtruth(tmp_path: Path) -> None:
    loaded = load("ragtruth", **ragtruth(tmp_path))
    assert loaded.rows == 3
    first, second, third = loaded.claims
    assert first.subclaims == ("It opened.", "It is long.", "It is a bridge.")
    assert [claim.label for claim in loaded.claims] == ["supported", "insufficient", "supported"]
    assert [claim.category for claim in loaded.claims] == ["Summary", "QA", "Data2txt"]
    assert (first.claim_id, first.document_id, first.evidence[0].reference) == ("10", "1", "1")
    assert first.evidence[0].text == "The bridge opened. It is long."
    assert second.evidence[0].text == "passage 1:Boil it.\n\npassage 2:Peel it."
    assert json.loads(third.evidence[0].text) == {"name": "Café", "stars": 3.0}
    assert [claim.claim_id for claim in load("ragtruth", {"split": "test"}, **ragtruth(tmp_path)).claims] == [
        "11",
        "12",
    ]
    qa = load("ragtruth", {"split": "test", "task_type": "QA"}, **ragtruth(tmp_path))
    assert ([claim.claim_id for claim in qa.claims], qa.rows) == (["11"], 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source_id": "9"}, "response.jsonl:1: no source has the id '9'"),
        ({"labels": None}, "no list of labels"),
        ({"response": " "}, "response is missing or no text"),
        ({"id": 4}, "id is missing or no text"),
    ],
)
def test_bad_ragtruth(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    paths = ragtruth(tmp_path)
    row = json.loads(paths["responses"].read_text("utf-8").splitlines()[0])
    write_rows(paths["responses"], [row | change])
    with pytest.raises(ConfigurationError, match=words):
        load("ragtruth", **paths)
    with pytest.raises(ConfigurationError, match="use train or test"):
        load("ragtruth", {"split": "dev"}, **paths)


def aggrefact(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "test.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_aggrefact(tmp_path: Path) -> None:
    rows = [
        {"dataset": "AggreFact-CNN", "doc": "Long text.", "claim": "It is long.", "label": 1, "more": 0},
        {"dataset": "Reveal", "doc": "Long text.", "claim": "It is short.", "label": 0, "more": 0},
    ]
    loaded = load("aggrefact", claims=aggrefact(tmp_path, rows))
    assert [(c.claim_id, c.label, c.category) for c in loaded.claims] == [
        ("AggreFact-CNN-0", "supported", "AggreFact-CNN"),
        ("Reveal-1", "insufficient", "Reveal"),
    ]
    first, second = loaded.claims
    assert first.evidence[0].text == "Long text." and first.document_id == second.document_id
    shape = shape_of("aggrefact", loaded.rows, loaded.claims)
    assert shape.model_dump() == {"rows": 2, "claims": 2, "labels": {"insufficient": 1, "supported": 1}}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"dataset": "d", "doc": "x", "claim": "y"}, "no parquet file with the columns"),
        ({"dataset": "d", "doc": "x", "claim": "y", "label": 2}, "row 0: the label is 2: known are 1, 0"),
        ({"dataset": "d", "doc": " ", "claim": "y", "label": 1}, "row 0: .*empty"),
        ({"dataset": "d", "doc": "x", "claim": None, "label": 1}, "row 0: claim is missing"),
    ],
)
def test_bad_aggrefact(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load("aggrefact", claims=aggrefact(tmp_path, [row]))


def test_fever_in_all_its_forms(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "claim": "A.", "label": "SUPPORTS", "evidence": ["one", "two"]},
        {"id": 2, "claim": "B.", "label": "REFUTES", "evidence": [{"text": "one", "reference": "r"}, {"text": "two"}]},
        {
            "id": 3,
            "verifiable": "VERIFIABLE",
            "claim": "C.",
            "label": "SUPPORTS",
            "evidence": [[[9, 8, "Oliver_Reed", 0]], [[9, 7, "Oliver_Reed", 0], [9, 7, "Gladiator", 2]]],
        },
        {"id": 4, "claim": "D.", "label": "NOT ENOUGH INFO", "evidence": [[[9, 6, None, None]]]},
    ]
    pages = [
        {"id": "Oliver_Reed", "text": "…", "lines": "0\tHe was an actor.\tactor\n1\t"},
        {"id": "Gladiator", "text": "…", "lines": "0\tA film.\n2\tIt is from 2000."},
    ]
    claims = write_rows(tmp_path / "dev.jsonl", rows)
    loaded = load("fever", claims=claims, pages=write_rows(tmp_path / "wiki.jsonl", pages))
    found = [(claim.claim_id, claim.label, {e.reference: e.text for e in claim.evidence}) for claim in loaded.claims]
    assert found == [
        ("1", "supported", {"e1": "one", "e2": "two"}),
        ("2", "refuted", {"r": "one", "e2": "two"}),
        ("3", "supported", {"Oliver_Reed:0": "He was an actor.", "Gladiator:2": "It is from 2000."}),
        ("4", "insufficient", {}),
    ]
    with pytest.raises(ConfigurationError, match=r"dev\.jsonl:3: no page has the sentence Oliver_Reed:0"):
        load("fever", claims=claims)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"label": "TRUE"}, "the label is 'TRUE'"),
        ({"evidence": None}, "evidence is missing"),
        ({"evidence": [3]}, "neither text, object nor evidence set"),
        ({"evidence": [["page", 1]]}, "is no .annotation"),
        ({"evidence": [" "]}, "empty"),
        ({"evidence": [{"text": "a", "reference": "r"}, {"text": "b", "reference": "r"}]}, "the reference 'r' twice"),
        ({"id": None}, "claim_id"),
        ({"claim": 3}, "claim"),
    ],
)
def test_bad_fever(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    good = {"id": 1, "claim": "A.", "label": "SUPPORTS", "evidence": ["one"]}
    path = write_rows(tmp_path / "dev.jsonl", [good | {"id": 0}, good | row])
    with pytest.raises(ConfigurationError, match=f"dev.jsonl:2: .*{words}"):
        load("fever", claims=path)


def test_claims_written_for_the_pipeline_are_the_same(tmp_path: Path) -> None:
    evidence = Evidence("r", "Ä text.", source_type="tool_output", event_time="2026-01-02T03:04:05Z")  # type: ignore[arg-type]
    claims = [Claim("a", "One.", (evidence,), True, "refuted", "x", "d", ("o", "p")), Claim("b", "Two.")]
    path = write_claims(claims, tmp_path / "deep" / "claims.jsonl")
    assert [claim_from_claims(json.loads(line)) for line in path.read_text("utf-8").splitlines()] == claims


def test_an_id_that_stands_twice(tmp_path: Path) -> None:
    row = {"id": 1, "claim": "A.", "label": "SUPPORTS", "evidence": ["one"]}
    with pytest.raises(ConfigurationError, match="has the claim id '1' twice"):
        load("fever", claims=write_rows(tmp_path / "dev.jsonl", [row, row]))


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text('\n{"id": 1', "utf-8")
    with pytest.raises(ConfigurationError, match=r"dev\.jsonl:2: the row is not valid JSON"):
        load("fever", claims=path)


def test_wice_subclaims(tmp_path: Path) -> None:
    def row(name: str, label: str, *evidence: str) -> dict[str, Any]:
        return {"label": label, "claim": f"Part {name}.", "evidence": [*evidence, " "], "meta": {"id": name, "n": 1}}

    rows = [
        row("dev02986-0", "supported", "One.", "Two."),
        row("dev02986-0", "supported", "Three."),
        row("dev02986-1", "partially_supported", "One."),
        row("dev00007-0", "supported", "Four."),
    ]
    loaded = load("wice_subclaims", claims=write_rows(tmp_path / "dev.jsonl", rows))
    assert (loaded.rows, [claim.document_id for claim in loaded.claims]) == (4, ["dev02986", "dev02986", "dev00007"])
    assert [item.text for item in loaded.claims[0].evidence] == ["One.\nTwo.", "Three."]
    assert loaded.claims[0].evidence[1].reference == "dev02986-0:oracle:2"
    assert shape_of("wice_subclaims", 4, loaded.claims).labels == {"partially_supported": 1, "supported": 2}
    gold = {claim.claim_id: claim.label for claim in loaded.claims}
    assert statuses_of_parents(loaded.claims, gold) == {"dev02986": "insufficient", "dev00007": "supported"}
    assert statuses_of_parents(loaded.claims, {})["dev00007"] == "insufficient"
    assert (parent_id("dev02986"), parent_id("a-b"), parent_id("a-b-3")) == ("dev02986", "a-b", "a-b")


@needs_shared
def test_wice_test_has_the_published_shape() -> None:
    path = SHARED / "wice" / "test.jsonl"
    loaded = load("wice", claims=path)
    labels = {"supported": 110, "partially_supported": 216, "not_supported": 32}
    check_shape(shape_of("wice", loaded.rows, loaded.claims), Shape(rows=1070, claims=358, labels=labels), "WiCE")
    assert sha256_file(path) == WICE_TEST
    with pytest.raises(ConfigurationError, match="has claims 358, expected is 357"):
        check_shape(shape_of("wice", 1070, loaded.claims), Shape(claims=357, labels=labels), "WiCE")


@needs_shared
def test_authored_cases() -> None:
    loaded = load("authored", cases=SHARED / "claim-verifier" / "minimal20" / "registration.json")
    assert (loaded.rows, loaded.claims[0].claim_id, loaded.claims[0].label) == (20, "support_exact_date", "supported")
    assert loaded.claims[-1].requires_complete_set


def test_authored_cases_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "registration.json"
    path.write_text('{"protocol": {"cases": [{"id": "a", "claim": " ", "evidence": []}]}}', "utf-8")
    with pytest.raises(ConfigurationError, match=r"registration\.json:case 1: .*empty"):
        load("authored", cases=path)


def test_every_form_has_a_loader() -> None:
    assert set(LOADERS) == set(Cohort.model_fields["form"].annotation.__args__)  # type: ignore[union-attr]


def claims(n: int) -> list[Claim]:
    return [Claim(f"c{k}", "x", label="supported" if k % 3 else "refuted", category=f"d{k % 2}") for k in range(n)]


def test_the_public_rule_of_samples() -> None:
    all_of = claims(60)
    drawn = sample(all_of, Sampler(seed="17", split="dev", per_stratum=3))
    expected: set[str] = set()
    for category in ("d0", "d1"):
        for label in ("supported", "refuted"):
            ids = [c.claim_id for c in all_of if (c.category, c.label) == (category, label)]
            by_hand = sorted(ids, key=lambda name: hashlib.sha256(b"17\x00dev\x00" + name.encode()).hexdigest())
            expected |= set(by_hand[:3])
    assert set(drawn) == expected and len(drawn) == 12
    assert list(drawn) == [claim.claim_id for claim in all_of if claim.claim_id in expected]
    assert sample(all_of[::-1], Sampler(seed="17", split="dev", per_stratum=3)) == drawn[::-1]
    for other in ({"seed": "18", "split": "dev"}, {"seed": "17", "split": "test"}):
        assert sample(all_of, Sampler(**other, per_stratum=3)) != drawn  # type: ignore[arg-type]
    assert first_by_digest(["a", "b"], "1", "2") in (["a", "b"], ["b", "a"])


def test_a_stratum_that_is_too_small() -> None:
    with pytest.raises(ConfigurationError, match="has 2 claims with the label 'refuted' to draw from"):
        sample(claims(12), Sampler(seed="1", split="s", per_stratum=3))


def test_what_makes_two_claims_the_same() -> None:
    one = Claim("a", "The  bridge\nopened.", (Evidence("r", "It did."),), label="supported")
    assert identity_of(one) == identity_of(
        Claim("b", "The bridge opened.", (Evidence("s", " It  did. "),), category="x")
    )
    for other in (Claim("a", "The bridge opened.", (Evidence("r", "It did not."),)), Claim("a", "The bridge opened.")):
        assert identity_of(one) != identity_of(other)
