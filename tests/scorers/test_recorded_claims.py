"""Recorded support by claim id: the WiCE forms, and the published trials recorded in them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shared import SHARED, needs_shared, read_lines
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError
from verifier.grounding.premises import joined_premise
from verifier.pipeline.forms import claim_from_wice
from verifier.protocol import Part
from verifier.scorers.ensemble import EnsembleScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer

VARIANTS = [
    {"label": "supported", "claim": "C one.", "evidence": ["A.", " ", "B."], "meta": {"id": "one"}},
    {"label": "supported", "claim": "C one.", "evidence": ["D."], "meta": {"id": "one"}},
    {"label": "not_supported", "claim": "C two.", "evidence": ["E."], "meta": {"id": "two"}},
]
JOINED = [("A.\nB.\nD.", "C one."), ("E.", "C two.")]


@pytest.fixture
def claims(tmp_path: Path) -> str:
    path = tmp_path / "claims.jsonl"
    path.write_text("\n".join(map(json.dumps, VARIANTS)) + "\n", "utf-8")
    return str(path)


def test_one_score_a_claim(tmp_path: Path, claims: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text('{"one": 1, "other": 0.5}', "utf-8")
    scorer = RecordedSupportFileScorer(str(path), claims=claims)
    scores = scorer.score_detailed([*JOINED, ("D.", "C one.")])
    assert scores.values[0] == 1.0 and list(scores.errors) == [1, 2] and not scores.parts
    identity = RecordedSupportFileScorer.identify(str(path), claims=claims)
    assert identity["claims_sha256"] == sha256_file(Path(claims))


def test_one_score_a_variant(tmp_path: Path, claims: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text('{"id": "one", "probs": [0.25, 0.75]}\n{"id": "two", "probs": [0.5]}\n', "utf-8")
    scores = RecordedSupportFileScorer(str(path), claims=claims).score_detailed(
        [*JOINED, ("A.\nB.", "C one."), ("D.", "C one.")]
    )
    assert scores.values.tolist() == [0.75, 0.5, 0.25, 0.75]
    assert (scores.windows.tolist(), scores.window.tolist()) == ([2, 1, 1, 1], [1, 0, 0, 0])
    assert scores.parts == {0: (Part(None, 0, 2, 0.25), Part(None, 1, 2, 0.75))}
    mean = RecordedSupportFileScorer(str(path), claims=claims, window_aggregation="mean")
    assert mean.score_pairs(JOINED) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("scores.json", '{"three": 0.5}', "none of its claim ids"),
        ("scores.json", '{"one": "high"}', "scores.json"),
        ("scores.json", '{"one": 1.5}', "1.5"),
        ("scores.jsonl", '{"id": "one", "probs": [0.5]}', "2 variants but 1 probs"),
        ("scores.jsonl", '{"id": "one", "probs": [0.5, null]}', "scores.jsonl"),
        ("scores.jsonl", '{"probs": [0.5]}', "scores.jsonl"),
    ],
)
def test_scores_that_do_not_fit_the_claims(tmp_path: Path, claims: str, name: str, content: str, reason: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ConfigurationError, match=reason):
        RecordedSupportFileScorer(str(tmp_path / name), claims=claims)


def test_scores_by_claim_need_the_claims(tmp_path: Path) -> None:
    path, broken = tmp_path / "scores.json", tmp_path / "broken.jsonl"
    path.write_text('{"one": 0.5}', "utf-8")
    broken.write_text('{"claim": "no meta"}', "utf-8")
    for claims, reason in ((None, r"scorer\.claims"), (str(broken), "no WiCE file"), (str(tmp_path / "x"), "no WiCE")):
        for refused in (RecordedSupportFileScorer, RecordedSupportFileScorer.identify):
            with pytest.raises(ConfigurationError, match=reason):
                refused(str(path), claims=claims)


def test_the_same_claims_as_members_of_an_ensemble(tmp_path: Path, claims: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "one", "probs": [0.25, 0.75]}\n', "utf-8")
    (tmp_path / "b.json").write_text('{"one": 0.5, "two": 0.5}', "utf-8")
    members = {
        name[0]: RecordedSupportFileScorer(str(tmp_path / name), claims=claims) for name in ("a.jsonl", "b.json")
    }
    scores = EnsembleScorer(members, "mean").score_detailed(JOINED)
    assert scores.values[0] == 0.625 and scores.errors[1].message.startswith("a: no score was recorded")
    assert scores.parts[0] == (Part("a", 0, 2, 0.25), Part("a", 1, 2, 0.75), Part("b", 0, 1, 0.5))


@needs_shared
def test_the_published_minicheck_trial_on_wice() -> None:
    folder = SHARED / "wice"
    scorer = RecordedSupportFileScorer(
        str(folder / "minicheck-flan-t5-large.test.scores.jsonl"), claims=str(folder / "test.jsonl")
    )
    variants: dict[str, list[dict[str, Any]]] = {}
    for row in read_lines("wice/test.jsonl"):
        variants.setdefault(row["meta"]["id"], []).append(row)
    claims = [claim_from_wice(rows) for rows in variants.values()]
    supports = scorer.score_pairs([(joined_premise(claim), claim.claim) for claim in claims])
    hits = [(support > 0.5, claim.category == "supported") for support, claim in zip(supports, claims, strict=True)]
    counts = [hits.count(case) for case in ((True, True), (True, False), (False, False), (False, True))]
    assert counts == [80, 24, 224, 30]
