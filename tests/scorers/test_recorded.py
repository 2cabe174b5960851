"""Scores from files: parquet, JSON lines, a run's own pairs and an assay's scores."""

import json
from pathlib import Path

import polars as pl
import pytest

from verifier.digests import sha256_file, sha256_text
from verifier.errors import ConfigurationError, MissingScore
from verifier.protocol import Pair
from verifier.scorers.base import score_round
from verifier.scorers.recorded import RecordedFileScorer, RecordedScorer

TRIPLES = [(0.9, 0.05, 0.05), (0.1, 0.2, 0.7)]
TEXTS = [("It rains.", "It is wet."), ("Дождь\n¿sí?", "It is dry.")]


def frame(digests: bool) -> pl.DataFrame:
    rows = []
    for (premise, hypothesis), (entailment, contradiction, neutral) in zip(TEXTS, TRIPLES, strict=True):
        names = {"premise": premise, "hypothesis": hypothesis}
        if digests:
            names = {f"{name}_sha256": sha256_text(text) for name, text in names.items()}
        rows.append({**names, "entailment": entailment, "contradiction": contradiction, "neutral": neutral})
    return pl.DataFrame(rows)


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_row_a_pair(tmp_path: Path, suffix: str, digests: bool) -> None:
    path = tmp_path / f"scores.{suffix}"
    if suffix == "parquet":
        frame(digests).write_parquet(path)
    else:
        frame(digests).write_ndjson(path)
    scorer = RecordedFileScorer(str(path), model="m", revision="r")
    assert scorer.score(TEXTS[::-1]).tolist() == [list(triple) for triple in TRIPLES[::-1]]
    assert (scorer.model, scorer.revision) == ("m", "r")
    identity = RecordedFileScorer.identify(str(path), "m", "r")
    assert identity == {"model": "m", "revision": "r", "sha256": sha256_file(path)}


def test_a_pair_that_was_not_recorded_is_an_error_of_its_own() -> None:
    scorer = RecordedScorer([(*TEXTS[0], *TRIPLES[0])])
    pairs = [Pair(row, "single", ("a",), *text) for row, text in enumerate([*TEXTS, TEXTS[0]])]
    scores = score_round(scorer, pairs)
    assert list(scores.errors) == [1]
    assert (scores.errors[1].outcome, scores.errors[1].code) == ("unscored", "missing_score")
    assert scores.values[[0, 2]].tolist() == [list(TRIPLES[0])] * 2
    with pytest.raises(MissingScore, match=sha256_text(TEXTS[1][0])):
        scorer.score(TEXTS)


def test_an_assays_scores(tmp_path: Path) -> None:
    evidence = [{"reference": "a", "text": " One. "}, {"reference": "b", "text": "Two."}]
    cases = [{"id": "c", "claim": " Both.", "evidence": evidence}]
    registration = tmp_path / "registration.json"
    registration.write_text(json.dumps({"protocol": {"cases": cases}}), "utf-8")
    line = {
        "id": "c",
        "groups": [[["a"], TRIPLES[0]], [["a", "b"], TRIPLES[1]]],
        "localized": [[["a"], sha256_text("Part"), TRIPLES[1]], [["b"], None, None]],
    }
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    scorer = RecordedFileScorer(str(path), registration=str(registration))
    asked = [("One.", "Both."), ("[E1] One.\n[E2] Two.", "Both."), ("Part", "Both.")]
    assert scorer.score(asked).tolist() == [list(TRIPLES[0]), list(TRIPLES[1]), list(TRIPLES[1])]
    with pytest.raises(ConfigurationError, match="registration"):
        RecordedFileScorer(str(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.jsonl", '{"premise": "x"}'),
        ("scores.jsonl", "not json"),
        ("scores.jsonl", ""),
        ("scores.parquet", "not parquet"),
        ("scores.jsonl", '{"id": "unknown", "groups": [], "localized": []}'),
    ],
)
def test_a_file_that_holds_no_scores_is_a_sentence(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    registration = tmp_path / "registration.json"
    registration.write_text('{"protocol": {"cases": []}}', "utf-8")
    with pytest.raises(ConfigurationError, match=name) as caught:
        RecordedFileScorer(str(tmp_path / name), registration=str(registration))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"scorer\.path"):
        RecordedFileScorer.identify(str(tmp_path / "none.jsonl"))
