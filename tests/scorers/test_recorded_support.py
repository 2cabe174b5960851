"""Recorded support: replay of windows and members, from memory, runs, tables and scores by claim id."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_module
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st

from verifier.digests import sha256_file, sha256_text
from verifier.errors import ConfigurationError, MissingScore
from verifier.protocol import Outcome, Part, ScoredPair
from verifier.results import result_row, results_table
from verifier.scorers.base import DetailedScorer, NLIScorer, identify
from verifier.scorers.recorded_support import RecordedSupportScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer
from verifier.validation import refuse_unknown_arguments

RULES = {"min": min, "mean": fmean, "max": max}
PAIR = ("It rains.", "It is wet.")
OTHER = ("Дождь\n¿sí?", "It is dry.")
MEMBERS = {"a": (0.2, 0.9, 0.4), "b": (0.6, 0.5)}  # supports, window by window


def parts(members: dict[str, Sequence[float]]) -> list[Any]:
    return [
        (*PAIR, support, member, window, len(supports))
        for member, supports in members.items()
        for window, support in enumerate(supports)
    ]


def test_plain_rows() -> None:
    scorer = RecordedSupportScorer([(*PAIR, 0.9), (*OTHER, 0.1), (*PAIR, 0.5)], model="m", revision="r")
    assert scorer.score_pairs([OTHER, PAIR]) == [0.1, 0.9]
    assert (scorer.model, scorer.revision, scorer.dtype) == ("m", "r", "recorded")
    assert isinstance(scorer, NLIScorer) and isinstance(scorer, DetailedScorer)
    scores = scorer.score_detailed([PAIR])
    assert not scores.parts and scores.windows.tolist() == [1]
    assert scorer.score_pairs([]) == []


def test_a_pair_that_was_not_recorded() -> None:
    scorer = RecordedSupportScorer([(*PAIR, 0.9)])
    scores = scorer.score_detailed([PAIR, OTHER])
    assert list(scores.errors) == [1] and scores.values[0] == 0.9
    assert (scores.errors[1].outcome, scores.errors[1].code) == ("unscored", "missing_score")
    with pytest.raises(MissingScore, match=sha256_text(OTHER[0])):
        scorer.score_pairs([PAIR, OTHER])


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(0, 1), min_size=1, max_size=9), min_size=1),
    st.sampled_from([*RULES, None]),
    st.sampled_from([*RULES, None]),
)
def test_windows_and_members_by_hand(
    members: dict[str, list[float]], window_rule: str | None, rule: str | None
) -> None:
    by_member = {name: RULES[window_rule or "max"](supports) for name, supports in members.items()}
    rows = [(*PAIR, 0.123), *parts(members)]
    scorer = RecordedSupportScorer(rows, window_aggregation=window_rule, aggregation=rule)
    anew = window_rule is not None or rule is not None
    scores = scorer.score_detailed([PAIR])
    assert scores.values[0] == (RULES[rule or "min"](list(by_member.values())) if anew else 0.123)
    if sum(map(len, members.values())) > 1:
        assert list(scores.parts[0]) == [Part(*row[3:], row[2]) for row in parts(members)]
    for name, expected in by_member.items():
        alone = RecordedSupportScorer(rows, window_aggregation=window_rule, member=name)
        assert alone.score_pairs([PAIR]) == [expected]


def test_the_window_that_decides_is_replayed() -> None:
    def decided(**choices: str) -> tuple[int, int, int]:
        scores = RecordedSupportScorer(parts(MEMBERS), **choices).score_detailed([PAIR])
        return int(scores.windows[0]), int(scores.window[0]), len(scores.parts[0])

    assert decided(aggregation="max") == (3, 1, 5)
    assert decided(aggregation="min") == (2, 0, 5)
    assert decided(aggregation="mean") == (3, 0, 5)
    assert decided(member="a", window_aggregation="min") == (3, 0, 3)
    assert decided(member="a", window_aggregation="mean") == (3, 0, 3)
    assert decided(member="b", window_aggregation="min") == (2, 1, 2)


def test_what_was_not_recorded_of_a_pair() -> None:
    rows = [row for row in parts(MEMBERS) if row[3:5] != ("a", 1)]
    error = RecordedSupportScorer(rows, aggregation="min").score_detailed([PAIR]).errors[0]
    assert (error.code, error.message[:29]) == ("missing_score", "not every window was recorded")
    assert RecordedSupportScorer(rows, member="b").score_pairs([PAIR]) == [0.6]
    with pytest.raises(MissingScore, match="the member c"):
        RecordedSupportScorer(rows, member="c").score_pairs([PAIR])
    lone = [(*PAIR, 0.7, None, 2, 3)]  # of a member that keeps its deciding window alone
    assert RecordedSupportScorer(lone, aggregation="min").score_detailed([PAIR]).window.tolist() == [2]
    assert RecordedSupportScorer(lone).score_pairs([PAIR]) == [0.7]
    with pytest.raises(MissingScore, match="not every window"):
        RecordedSupportScorer(lone, window_aggregation="max").score_pairs([PAIR])


@pytest.mark.parametrize(
    "choices",
    [
        {"window_aggregation": "median"},
        {"aggregation": "sum"},
        {"aggregation": "min", "member": "a"},
    ],
)
def test_choices_that_are_no_choices(tmp_path: Path, choices: dict[str, str]) -> None:
    path = table(tmp_path, "scores.parquet", [{"premise": "p", "hypothesis": "h", "support": 0.5}])
    with pytest.raises(ConfigurationError, match=r"scorer\."):
        RecordedSupportScorer([(*PAIR, 0.5)], **choices)
    with pytest.raises(ConfigurationError, match=r"scorer\."):
        RecordedSupportFileScorer.identify(path, **choices)


def test_parts_without_a_whole_need_a_choice() -> None:
    with pytest.raises(ConfigurationError, match="choose window_aggregation"):
        RecordedSupportScorer(parts(MEMBERS))


@pytest.mark.parametrize("support", [1.5, -0.1, float("nan")])
def test_a_support_that_is_no_probability(support: float) -> None:
    with pytest.raises(ConfigurationError, match="a number in"):
        RecordedSupportScorer([(*PAIR, support)])


def table(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame.write_parquet(folder / name) if name.endswith("parquet") else frame.write_ndjson(folder / name)
    return str(folder / name)


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize("name", ["scores.parquet", "scores.jsonl"])
def test_a_table_of_pairs(tmp_path: Path, name: str, digests: bool) -> None:
    def texts(pair: tuple[str, str]) -> dict[str, str]:
        named = dict(zip(("premise", "hypothesis"), pair, strict=True))
        return {f"{key}_sha256": sha256_text(text) for key, text in named.items()} if digests else named

    rows = [{**texts(PAIR), "support": 1}, {**texts(OTHER), "support": 0.25}]
    path = table(tmp_path, name, rows)
    scorer = RecordedSupportFileScorer(path)
    assert scorer.score_pairs([OTHER, PAIR]) == [0.25, 1.0]
    digest = sha256_file(Path(path))
    assert RecordedSupportFileScorer.identify(path) == {"model": "recorded", "revision": digest, "sha256": digest}
    assert (scorer.model, scorer.revision) == ("recorded", digest)
    assert RecordedSupportFileScorer.identify(path, "m", "r") == {"model": "m", "revision": "r", "sha256": digest}


def test_a_table_of_parts_without_kinds(tmp_path: Path) -> None:
    names = ("premise", "hypothesis", "support", "member", "window", "windows")
    path = table(tmp_path, "scores.jsonl", [dict(zip(names, row, strict=True)) for row in parts(MEMBERS)])
    assert RecordedSupportFileScorer(path, aggregation="max").score_pairs([PAIR]) == [0.9]
    assert RecordedSupportFileScorer(path, member="b", window_aggregation="min").score_pairs([PAIR]) == [0.5]
    with pytest.raises(ConfigurationError, match="choose"):
        RecordedSupportFileScorer(path)


def test_a_members_column_that_begins_with_nulls(tmp_path: Path) -> None:
    lines = [{"premise": str(n), "hypothesis": "h", "support": 0.5, "member": None} for n in range(300)]
    lines += [{"premise": "x", "hypothesis": "h", "support": 0.25, "member": "late"}]
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert RecordedSupportFileScorer(str(path)).score_pairs([("299", "h"), ("x", "h")]) == [0.5, 0.25]


def run_directory(folder: Path) -> str:
    """A run whose claim asked for one pair, of an ensemble with windows, and for one that was not scored."""
    pairs = [
        ScoredPair("joined", ("r",), *PAIR, {"support": 0.6}, window=0, windows=2, truncated=True),
        *(
            ScoredPair("window", ("r",), *PAIR, {"support": support}, window=window, windows=windows, member=member)
            for *_, support, member, window, windows in parts(MEMBERS)
        ),
        ScoredPair("joined", ("r",), *OTHER, {}),
    ]
    outcome = Outcome(None, tuple(pairs))
    row = result_row(
        {"row_id": 0, "claim_id": "c"}, outcome, method="grounding", model="m", revision="r", dtype="float32", seconds=0
    )
    (folder / "results").mkdir()
    pq.write_table(results_table([row]), folder / "results" / "part.parquet")
    return str(folder)


def test_a_run_directory(tmp_path: Path) -> None:
    path = run_directory(tmp_path)
    scores = RecordedSupportFileScorer(path).score_detailed([PAIR, OTHER])
    assert scores.values[0] == 0.6 and list(scores.errors) == [1]
    assert (int(scores.windows[0]), int(scores.window[0]), bool(scores.truncated[0])) == (2, 0, True)
    assert list(scores.parts[0]) == [Part(*row[3:], row[2]) for row in parts(MEMBERS)]
    assert RecordedSupportFileScorer(path, aggregation="mean").score_pairs([PAIR]) == [(0.9 + 0.6) / 2]
    assert RecordedSupportFileScorer(path, member="a", window_aggregation="min").score_pairs([PAIR]) == [0.2]
    identity = RecordedSupportFileScorer.identify(path)
    assert identity["revision"] == identity["sha256"] == RecordedSupportFileScorer(path).revision
    (tmp_path / "results" / "part.parquet").rename(tmp_path / "results" / "renamed.parquet")
    assert RecordedSupportFileScorer.identify(path)["sha256"] != identity["sha256"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.jsonl", '{"premise": "x", "hypothesis": "y"}'),
        ("scores.jsonl", '{"premise": "x", "support": 0.5}'),
        ("scores.jsonl", "not json"),
        ("scores.jsonl", ""),
        ("scores.json", "[0.5]"),
        ("scores.parquet", "not parquet"),
    ],
)
def test_a_file_that_holds_no_support_is_a_sentence(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    for refused in (RecordedSupportFileScorer, RecordedSupportFileScorer.identify):
        with pytest.raises(ConfigurationError, match=name) as caught:
            refused(str(tmp_path / name))
        assert "\n" not in str(caught.value)


def test_missing_files_are_a_sentence(tmp_path: Path) -> None:
    for refused in (RecordedSupportFileScorer, RecordedSupportFileScorer.identify):
        with pytest.raises(ConfigurationError, match="No such file"):
            refused(str(tmp_path / "none.jsonl"))
        with pytest.raises(ConfigurationError, match="no results"):
            refused(str(tmp_path))


def test_a_table_that_holds_no_support_at_all(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"premise": "p", "hypothesis": "h", "support": None}]
    path = table(tmp_path, "scores.parquet", rows)
    with pytest.raises(ConfigurationError, match="holds no recorded support"):
        RecordedSupportFileScorer(path)
    path = table(tmp_path, "scores.parquet", [{"premise": None, "hypothesis": "h", "support": 0.5}])
    with pytest.raises(ConfigurationError, match="lacks its premise"):
        RecordedSupportFileScorer(path)


def test_the_menu_entry(tmp_path: Path) -> None:
    path = table(tmp_path, "scores.jsonl", [{"premise": PAIR[0], "hypothesis": PAIR[1], "support": 0.5}])
    with initialize_config_module("conf", version_base=None):
        scorer = compose("verify", overrides=["scorer=recorded_support", f"scorer.path={path}"]).scorer
    factory = instantiate(scorer)
    refuse_unknown_arguments(factory, "scorer")
    assert factory().score_pairs([PAIR]) == [0.5]
    assert identify(factory)["sha256"] == sha256_file(Path(path))
