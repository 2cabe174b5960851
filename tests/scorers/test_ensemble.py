"""Ensembles of tiny real models, of recorded scores and of plain scorers."""

import json
import pickle
import threading
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_module
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import SHARED, needs_shared, read_lines
from tests.tiny_models import LINES, save_tiny
from verifier.errors import ConfigurationError, MissingScore, PairTooLong, VerificationError
from verifier.grounding.premises import joined_premise
from verifier.pipeline.forms import claim_from_wice
from verifier.protocol import Pair, Part
from verifier.records import Claim
from verifier.scorers import EnsembleScorer
from verifier.scorers.base import DetailedScorer, NLIScorer, identify, support_round
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.recorded_support import RecordedSupportScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer
from verifier.validation import refuse_unknown_arguments

PAIRS = [("It rains.", "It is wet."), ("It snows.", "It is cold.")]


def recorded(*supports: float, model: str = "a", pairs: Sequence[tuple[str, str]] = PAIRS) -> RecordedSupportScorer:
    return RecordedSupportScorer(
        [(*pair, support) for pair, support in zip(pairs, supports, strict=False)], model=model
    )


class Plain:
    """A scorer of the seed: nothing but ``score_pairs``."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [len(premise) % 10 / 10 for premise, _ in pairs]


@pytest.mark.parametrize(("rule", "expected"), [("min", [0.2, 0.4]), ("mean", [0.5, 0.5]), ("max", [0.8, 0.6])])
def test_the_rules(rule: str, expected: list[float]) -> None:
    ensemble = EnsembleScorer([recorded(0.2, 0.6), recorded(0.8, 0.4, model="b")], rule)
    assert ensemble.score_pairs(PAIRS) == pytest.approx(expected)
    assert ensemble.model == f"ensemble({rule}: a, b)" and ensemble.dtype == "recorded"
    assert ensemble.score_pairs([]) == [] and ensemble.score_detailed([]).values.shape == (0,)
    assert isinstance(ensemble, NLIScorer) and isinstance(ensemble, DetailedScorer)


def test_min_is_the_default() -> None:
    assert EnsembleScorer([recorded(0.2), recorded(0.8)]).score_pairs(PAIRS[:1]) == [0.2]


@pytest.mark.parametrize("members", [[], [recorded(0.1)], {"a": recorded(0.1)}, None, "ab", [recorded(0.1), None]])
def test_fewer_than_two_members_and_other_things_are_refused(members: object) -> None:
    for refused in (EnsembleScorer, EnsembleScorer.identify):
        with pytest.raises(ValueError, match="an ensemble"):
            refused(members)


def test_another_aggregation_is_refused() -> None:
    for refused in (EnsembleScorer, EnsembleScorer.identify):
        with pytest.raises(ValueError, match="'median' is unknown: use min, mean, max"):
            refused([recorded(0.1), recorded(0.1)], "median")


def test_members_of_a_list_are_told_apart_and_a_mapping_names_its_own() -> None:
    members = [recorded(0.1), recorded(0.2), recorded(0.3, model="b"), recorded(0.4), Plain()]
    assert list(EnsembleScorer(members).members) == ["a", "a#2", "b", "a#3", "Plain"]
    named = EnsembleScorer({"x": recorded(0.1), "y": recorded(0.2)}, "max")
    assert named.model == "ensemble(max: x, y)"
    assert [part.member for part in named.score_detailed(PAIRS[:1]).parts[0]] == ["x", "y"]


def test_the_revision_is_that_of_the_members() -> None:
    def of(*revisions: str) -> str:
        return EnsembleScorer([RecordedSupportScorer([], "m", revision) for revision in revisions]).revision

    assert of("1", "2") == of("1", "2") != of("1", "3")
    assert len(of("1", "2")) == 64


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=9))
def test_any_supports_by_hand(rows: list[tuple[float, ...]]) -> None:
    pairs = [(str(number), "h") for number in range(len(rows))]
    members = [recorded(*column, pairs=pairs) for column in zip(*rows, strict=True)]
    for rule, by_hand in {"min": min, "mean": fmean, "max": max}.items():
        scores = EnsembleScorer(members, rule).score_detailed(pairs)
        assert scores.values.tolist() == [by_hand(row) for row in rows]
        assert [tuple(part.support for part in scores.parts[index]) for index in range(len(rows))] == rows


def windowed() -> tuple[RecordedSupportScorer, RecordedSupportScorer]:
    """The first member has three windows (0.1, 0.7, 0.7), the second two (0.7, 0.2); both keep their largest."""
    first = [(*PAIRS[0], support, None, window, 3) for window, support in enumerate((0.1, 0.7, 0.7))]
    second = [(*PAIRS[0], support, None, window, 2) for window, support in enumerate((0.7, 0.2))]
    return (
        RecordedSupportScorer(first, "a", window_aggregation="max"),
        RecordedSupportScorer(second, "b", window_aggregation="max"),
    )


@pytest.mark.parametrize(("rule", "decided"), [("min", (3, 1)), ("max", (3, 1)), ("mean", (3, 0))])
def test_windows_are_those_of_the_member_that_stands_and_parts_are_all(rule: str, decided: tuple[int, int]) -> None:
    scores = EnsembleScorer(windowed(), rule).score_detailed(PAIRS[:1])
    assert (int(scores.windows[0]), int(scores.window[0])) == decided
    assert scores.parts[0] == (
        Part("a", 0, 3, 0.1),
        Part("a", 1, 3, 0.7),
        Part("a", 2, 3, 0.7),
        Part("b", 0, 2, 0.7),
        Part("b", 1, 2, 0.2),
    )
    swapped = EnsembleScorer(windowed()[::-1], rule).score_detailed(PAIRS[:1])
    assert (int(swapped.windows[0]), int(swapped.window[0])) == ((3, 0) if rule == "mean" else (2, 0))


def test_an_ensemble_can_be_a_member() -> None:
    inner = EnsembleScorer({"x": recorded(0.2), "y": recorded(0.4)}, "max")
    scores = EnsembleScorer({"inner": inner, "z": recorded(0.9)}).score_detailed(PAIRS[:1])
    assert scores.values.tolist() == [0.4]
    assert [part.member for part in scores.parts[0]] == ["inner.x", "inner.y", "z"]


@pytest.mark.parametrize("concurrent", [False, True])
def test_an_error_of_a_member_is_the_pairs_error(concurrent: bool) -> None:
    ensemble = EnsembleScorer({"x": recorded(0.2, 0.3), "y": recorded(0.4)}, concurrent=concurrent)
    scores = ensemble.score_detailed(PAIRS)
    assert list(scores.errors) == [1] and list(scores.parts) == [0]
    assert (scores.errors[1].outcome, scores.errors[1].code) == ("unscored", "missing_score")
    assert scores.errors[1].message.startswith("y: no score was recorded")
    assert scores.values[0] == 0.2 and np.isnan(scores.values[1])
    with pytest.raises(MissingScore, match="pair 1 has no score: y: "):
        ensemble.score_pairs(PAIRS)


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_member_that_fails_fails_the_ensemble(concurrent: bool) -> None:
    class Broken(Plain):
        def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            raise OSError("no network")

    class OutOfRange(Plain):
        def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            return [1.5] * len(pairs)

    for member, reason in ((Broken(), "Broken failed: no network"), (OutOfRange(), "1.5")):
        with pytest.raises(VerificationError, match=reason):
            EnsembleScorer([Plain(), member], concurrent=concurrent).score_pairs(PAIRS)


def test_concurrent_members_are_asked_at_once() -> None:
    barrier = threading.Barrier(3, timeout=10)

    class Waiting(Plain):
        def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            barrier.wait()  # goes on when all three are asked
            return super().score_pairs(pairs)

    ensemble = EnsembleScorer([Waiting(), Waiting(), Waiting()], "mean", concurrent=True)
    assert ensemble.score_pairs(PAIRS) == pytest.approx(Plain().score_pairs(PAIRS))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    first, second = (
        save_tiny(family, tmp_path_factory.mktemp(family), seed=seed) for seed, family in enumerate(("bert", "roberta"))
    )
    return first, second


def test_three_label_models_count_with_their_entailment(models: tuple[str, str]) -> None:
    pairs = [*PAIRS, (" ".join(LINES), LINES[0])]
    singles = [CrossEncoderScorer(model) for model in models]
    entailment = np.array([scorer.score(pairs)[:, 0] for scorer in singles])
    scores = EnsembleScorer(singles).score_detailed(pairs)
    assert np.abs(scores.values - entailment.min(axis=0)).max() < 1e-5
    lone = [scorer.score_detailed(pairs) for scorer in singles]
    assert lone[0].windows[2] > 1
    for index in range(3):
        stands = lone[int(entailment[:, index].argmin())]
        assert (scores.windows[index], scores.window[index]) == (stands.windows[index], stands.window[index])


def test_truncated_by_any_member_and_too_long_for_one(models: tuple[str, str]) -> None:
    long = (" ".join(LINES), LINES[0])
    cut = EnsembleScorer([Plain(), CrossEncoderScorer(models[0], too_long="truncate")])
    assert cut.score_detailed([PAIRS[0], long]).truncated.tolist() == [False, True]
    refused = EnsembleScorer([Plain(), CrossEncoderScorer(models[0], too_long="reject")])
    assert refused.score_detailed([long]).errors[0].outcome == "rejected"
    with pytest.raises(PairTooLong):
        refused.score_pairs([long])


def test_factories_are_identified_without_loading_and_built_by_the_constructor(
    models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {name: partial(CrossEncoderScorer, model=model) for name, model in zip("xy", models, strict=True)}
    built = EnsembleScorer(members)
    monkeypatch.setattr("verifier.scorers.cross_encoder.load_weights", None)  # loading now would fail
    for factory in (partial(EnsembleScorer, members=members), partial(EnsembleScorer, list(members.values()))):
        identity = identify(factory)
        assert identity["revision"] == built.revision
    identity = identify(partial(EnsembleScorer, members=members, aggregation="min", concurrent=True))
    assert (identity["model"], identity["revision"]) == ("ensemble(min: x, y)", built.revision)
    assert built.model == identity["model"]
    assert (identity["x.model"], identity["y.model"]) == models
    with pytest.raises(ConfigurationError, match=r"scorer\.members\.y\.modle"):
        EnsembleScorer.identify({**members, "y": partial(CrossEncoderScorer, modle="m")})


@needs_shared
@pytest.mark.parametrize(("rule", "by_hand"), [("min", min), ("mean", lambda pair: sum(pair) / 2), ("max", max)])
def test_two_published_models_over_the_wice_claims_that_both_cover(rule: str, by_hand: object) -> None:
    wice = SHARED / "wice"
    files = {"minicheck": "minicheck-flan-t5-large.test.scores.jsonl", "t5": "t5-3b-anli-wice.test.scores.json"}
    claims_file = str(wice / "test.jsonl")
    ensemble = EnsembleScorer(
        {name: RecordedSupportFileScorer(str(wice / file), claims=claims_file) for name, file in files.items()}, rule
    )
    t5 = json.loads((wice / files["t5"]).read_text("utf-8"))
    minicheck = {row["id"]: max(row["probs"]) for row in read_lines(f"wice/{files['minicheck']}")}
    claims = [claim for claim in wice_claims() if claim.claim_id in t5]
    assert len(claims) == 100
    pairs = [(joined_premise(claim), claim.claim) for claim in claims]
    expected = [by_hand((minicheck[claim.claim_id], t5[claim.claim_id])) for claim in claims]
    assert ensemble.score_pairs(pairs) == expected
    others = [claim for claim in wice_claims() if claim.claim_id not in t5]
    scores = ensemble.score_detailed([(joined_premise(claim), claim.claim) for claim in others])
    assert len(scores.errors) == len(others) == 258
    assert {error.code for error in scores.errors.values()} == {"missing_score"}


def wice_claims() -> list[Claim]:
    variants: dict[str, list[dict[str, object]]] = {}
    for row in read_lines("wice/test.jsonl"):
        variants.setdefault(row["meta"]["id"], []).append(row)
    return [claim_from_wice(rows) for rows in variants.values()]


def test_a_round_asks_an_ensemble_like_any_other_scorer() -> None:
    pairs = [Pair(row, "single", ("a",), *PAIRS[row % 2]) for row in range(4)]
    scores = support_round(EnsembleScorer([recorded(0.2, 0.6), recorded(0.8, 0.4)]), pairs)
    assert scores.values.tolist() == [0.2, 0.4, 0.2, 0.4]
    assert len(scores.parts) == 4


def of_the_menu(*overrides: str) -> Any:
    with initialize_config_module("conf", version_base=None):
        return instantiate(compose("verify", overrides=["scorer=ensemble", *overrides]).scorer)


def test_the_menu_entry_takes_other_members(models: tuple[str, str]) -> None:
    published = of_the_menu()
    assert isinstance(published, partial) and list(published.keywords["members"]) == ["hhem", "minicheck"]
    for member in published.keywords["members"].values():
        refuse_unknown_arguments(member, "scorer")
    factory = of_the_menu(
        "~scorer.members.hhem",
        "~scorer.members.minicheck",
        "+scorer@scorer.members.first=cross_encoder",
        f"scorer.members.first.model={models[0]}",
        "scorer.members.first.revision=null",
        "+scorer.members.second={_target_: verifier.scorers.cross_encoder.CrossEncoderScorer, _partial_: true,"
        f" model: {models[1]}}}",
        "scorer.aggregation=mean",
    )
    built = pickle.loads(pickle.dumps(factory))()
    entailment = [CrossEncoderScorer(model).score(PAIRS)[:, 0] for model in models]
    assert np.abs(np.mean(entailment, axis=0) - built.score_pairs(PAIRS)).max() < 1e-5
    identity = identify(factory)
    assert (identity["model"], identity["revision"]) == (built.model, built.revision)
    assert built.model == "ensemble(mean: first, second)"
