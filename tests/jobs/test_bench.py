"""The benchmark on tiny sizes: that rows come out equal and figures are written, never how fast."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.driver import environment
from verifier.bench import families
from verifier.bench.families import measure_families
from verifier.bench.figures import Figure
from verifier.bench.planning import measure_planning
from verifier.bench.scorers import FreeScorer, MemoScorer, free_triple

TINY_SHAPE = {
    "vocab_size": 5000,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "position_buckets": 8,
}
TINY = ", ".join(f"{name}: {size}" for name, size in TINY_SHAPE.items())  # in Hydra's words
FAMILIES = {
    *("cross_encoder", "nli", "factcg", "hhem", "minicheck_roberta", "minicheck_deberta"),
    *("minicheck_flan_t5", "minicheck_flan_t5_premise_hypothesis"),
}


def bench(folder: Path, *overrides: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "jobs.bench", "output.dir=out", *overrides]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def figures_of(part: dict[str, Any]) -> dict[str, float]:
    return {figure["name"]: figure["median"] for figure in part["figures"]}


def write_wice(path: Path) -> Path:
    sentences = ["It opened in 1995.", "It never opened before 1995.", "Visitors want more.", "", "They were 20,000."]
    rows = [
        {
            "label": "not_supported",
            "claim": f"Museum {number} opened in {1994 + number}, and 20,000 visitors came.",
            "evidence": [f"Museum {number}.", *sentences[variant:]],
            "meta": {"id": f"test{number}", "chunk_idx": 0, "oracle_idx": variant},
        }
        for number in range(4)
        for variant in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_both_sides_of_the_planning_part_make_equal_records(tmp_path: Path) -> None:
    pytest.importorskip("prme", reason="the optional extra 'peers' is not installed")
    part = measure_planning(str(write_wice(tmp_path / "wice.jsonl")), {}, rounds=2, batch_size=3)
    assert part.details["records_compared"] == part.details["records_equal"] == 2 * 2 * 4  # corpora, scorings, claims
    assert {len(figure.values) for figure in part.figures} == {2}


def test_whole_runs_are_measured_and_written_down(tmp_path: Path) -> None:
    status, output, errors = bench(
        tmp_path,
        "bench.parts=[planning,ceiling,scale]",
        "bench.wice=nowhere.jsonl",
        "bench.ceiling.rounds=1",
        "bench.ceiling.mixed=3",
        "bench.ceiling.demo=6",
        "bench.ceiling.threads=1",
        f"bench.ceiling.shape={{{TINY}}}",
        "bench.scale.sizes=[20,40]",
        "tracking.uri=sqlite:///tracking.db",
    )
    assert status == 0, errors
    planning, ceiling, scale = json.loads((tmp_path / "out/bench.json").read_text())["parts"]
    assert planning["figures"] == []
    assert "nowhere.jsonl is not there" in planning["notes"][0]
    assert ceiling["details"]["runs"][0]["counts"]["claims"] == 9
    assert ceiling["details"]["bare_loops"][0]["pairs"] <= ceiling["details"]["runs"][0]["counts"]["pairs"]
    assert 0 <= figures_of(ceiling)["padding/run"] < 1
    assert scale["name"] == "scale"
    assert [scale["details"]["runs"][size][0]["counts"]["claims"] for size in ("20", "40")] == [20, 40]
    assert 0 < figures_of(scale)["40/actor_private_memory"] < 1024 * figures_of(scale)["40/whole_memory"]
    assert "share_of_ceiling" in output
    assert "tracking.db run" in output
    assert list((tmp_path / "out/scratch").rglob("*.jsonl")) == []


def test_an_unknown_part_is_one_sentence(tmp_path: Path) -> None:
    status, _, errors = bench(tmp_path, "bench.parts=[planing]")
    assert status == 2
    assert "known are planning, ceiling, growth, scale, families" in errors


def test_both_sides_of_the_families_part_give_equal_probabilities(tmp_path: Path) -> None:
    part = measure_families(str(tmp_path / "scratch"), rounds=2, claims=8, shape=TINY_SHAPE, target=0.0)
    measured = part.details["families"]
    assert set(measured) == FAMILIES
    for name, sides in measured.items():
        assert sides["difference"] <= 1e-5 < sides["spread"], name  # else no prompt could be told from another
        assert sides["scorer_tokens"] == sides["loop_tokens"], name
    assert {figure.name.partition("/")[0] for figure in part.figures} == FAMILIES
    assert all(figure.met for figure in part.figures if figure.target)
    assert len(part.notes) == 1
    assert list((tmp_path / "scratch").iterdir()) == []


def test_answers_to_other_prompts_show_in_the_families_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_FAMILIES", {"factcg": families._FAMILIES["factcg"]._replace(document=str.upper)})
    part = measure_families(str(tmp_path), rounds=1, claims=8, shape=TINY_SHAPE)
    assert part.notes[-1] == "PROBABILITIES DIFFER: factcg"
    assert [figure.name for figure in part.figures if figure.met is False] == ["factcg/max_difference"]


def test_free_scorers_agree_with_each_other() -> None:
    pairs = [("a", "b"), ("b", "a"), ("a", "b")]
    for kind in ("undecided", "sharp"):
        expected = [list(free_triple(kind, *pair)) for pair in pairs]
        assert FreeScorer(kind).score(pairs).tolist() == expected
        assert MemoScorer(kind, "m", "r").score(pairs).tolist() == expected


def test_targets_bound_the_median() -> None:
    assert Figure("f", [1, 9, 2], least=2).met
    assert not Figure("f", [1, 9, 2], least=3).met
    assert not Figure("f", [1, 9, 2], most=1.9).met
    assert Figure("f", [1]).met is None
