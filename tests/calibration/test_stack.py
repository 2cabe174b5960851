"""Calibrators, the features of the stack, and both as a scorer around a real model class."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import pytest
from hydra.utils import instantiate
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tests.calibration.synthetic import draw
from tests.tiny_models import LINES, save_tiny_flan_t5
from verifier.calibration.anchors import FEATURES, anchor_features
from verifier.calibration.calibrators import SUPPORT, Kind, apply, fit, read_calibrator
from verifier.calibration.crossfit import grouped_folds, out_of_fold
from verifier.errors import ConfigurationError
from verifier.protocol import Part
from verifier.scorers.base import NLIScorer, identify
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer
from verifier.scorers.stack import StackScorer

KINDS: tuple[Kind, ...] = ("isotonic", "logistic", "stack")


def features(evidence: str, claim: str) -> dict[str, float]:
    return dict(zip(FEATURES, anchor_features([(evidence, claim)])[0].tolist(), strict=True))


def test_the_features_by_hand() -> None:
    evidence = "Ada Vance moved the ledger to Lyon on 3 March. The ferry was not inspected. Nobody saw Bo."
    assert features(evidence, "Later Vance moved the ledger to Oslo on 3 April.") == {
        "sentence_alignment": 3 / 6,  # of later, vance, moved, ledger, oslo and april
        "evidence_alignment": 3 / 6,
        "numeric_anchors": 1 / 2,
        "capitalized_anchors": 1 / 3,
        "negation_conflict": 0.0,
    }
    assert features(evidence, "The ferry was inspected.")["negation_conflict"] == 1.0
    assert features(evidence, "The ferry was not inspected.")["negation_conflict"] == 0.0
    assert features(evidence, "Ada did not move the ledger to Lyon on 3 March.")["negation_conflict"] == 1.0
    spread = features(evidence, "ledger ferry")
    assert (spread["sentence_alignment"], spread["evidence_alignment"]) == (1 / 2, 1.0)


def test_features_of_nothing() -> None:
    assert anchor_features([]).shape == (0, 5)
    assert features("", "The ferry left.") == dict.fromkeys(FEATURES, 0.0) | {
        "numeric_anchors": 1.0,
        "capitalized_anchors": 1.0,
    }
    assert features("Anything.", "is it")["sentence_alignment"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_calibrator_survives_json_and_depends_on_its_own_row_alone(kind: Kind, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    scores, positive = draw(random, 400, 0.0, 0.6)
    inputs = np.column_stack([scores, random.random((400, len(FEATURES)))])
    fitted = fit(kind, inputs, positive)
    path = tmp_path / "calibrator.json"
    path.write_text(json.dumps(fitted))
    probabilities = apply(read_calibrator(path), inputs)
    assert (probabilities == apply(fitted, inputs)).all()
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert probabilities.mean() == pytest.approx(positive.mean(), abs=0.01)
    assert [apply(fitted, inputs[index : index + 1])[0] for index in (0, 7, 399)] == probabilities[[0, 7, 399]].tolist()
    if kind == "isotonic":
        assert (np.diff(probabilities[np.argsort(scores)]) >= 0).all()


def test_the_logistic_map_is_that_of_scikit_learn() -> None:
    scores, positive = draw(np.random.default_rng(3), 300, 0.1, 0.8)
    scores[:2] = 0.0, 1.0
    logit = np.log(np.clip(scores, 1e-6, 1 - 1e-6) / (1 - np.clip(scores, 1e-6, 1 - 1e-6)))[:, None]
    standard = (logit - logit.mean()) / logit.std()
    expected = LogisticRegression().fit(standard, positive).predict_proba(standard)[:, 1]
    assert apply(fit("logistic", scores[:, None], positive), scores[:, None]) == pytest.approx(expected, abs=1e-9)


def test_the_stack_learns_what_the_score_does_not_see() -> None:
    """Scores that overlook numbers: half of the claims have a number that the evidence lacks, and are not supported."""
    random = np.random.default_rng(1)
    wrong = random.random(300) < 0.5
    numbers = random.integers(100, 999, 300)
    pairs = [
        (f"The ledger lists {n} boats.", f"The ledger lists {n + 1 if bad else n} boats.")
        for n, bad in zip(numbers, wrong, strict=True)
    ]
    scores = np.clip(random.normal(0.6, 0.15, 300) - 0.1 * wrong, 0, 1)
    inputs = np.hstack([scores[:, None], anchor_features(pairs)])
    fold = grouped_folds(~wrong, np.arange(300), 5, 0)
    found = {kind: roc_auc_score(~wrong, out_of_fold(kind, inputs, ~wrong, fold)) for kind in ("none", "stack")}
    assert found["none"] < 0.75 and found["stack"] > 0.99


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "indices"),
        ('{"kind": "oracle"}', "oracle"),
        ('{"kind": "isotonic", "x": [0, 1], "y": [0.5]}', "one length"),
        ('{"kind": "logistic", "features": ["x"], "mean": [0], "scale": [1], "weights": [1]}', "its features"),
    ],
)
def test_a_file_that_holds_no_calibrator_is_refused(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=reason) as raised:
        read_calibrator(path)
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_calibrator(tmp_path / "none.json")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_flan_t5(tmp_path_factory.mktemp("flan"))


def written(folder: Path, kind: str = "stack", numbers: float = 2.0) -> str:
    count = 1 + len(FEATURES) if kind == "stack" else 1
    calibrator: dict[str, Any] = {
        "kind": kind,
        "features": [SUPPORT, *FEATURES][:count],
        "mean": [0.0] * count,
        "scale": [1.0] * count,
        "weights": [1.0, 0.5, 0.5, numbers, 1.0, -1.0][:count],
        "intercept": -1.0,
    }
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(calibrator))
    return str(path)


def test_the_stack_is_a_scorer_around_a_model(model: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    base = partial(MiniCheckFlanT5Scorer, model=model, device="cpu")
    stack = StackScorer(base, path)
    assert isinstance(stack, NLIScorer)
    pairs = [
        (LINES[0], "The museum opened in 1995."),
        (LINES[0], "The museum opened in 1996."),
        (LINES[2], "Ada left."),
    ]
    scores = stack.score_detailed(pairs)
    plain = base().score_detailed(pairs)
    expected = apply(read_calibrator(path), np.hstack([plain.values[:, None], anchor_features(pairs)]))
    assert scores.values == pytest.approx(expected, abs=1e-6)
    assert scores.values[0] > scores.values[1], "1996 stands nowhere"
    assert stack.score_pairs(pairs) == scores.values.tolist()
    assert scores.parts[1] == (Part("base", 0, 1, pytest.approx(plain.values[1], abs=1e-6)),)


def test_a_pair_without_a_base_score_has_none(model: str, tmp_path: Path) -> None:
    base = MiniCheckFlanT5Scorer(model=model, device="cpu", max_length=24, too_long="reject", packing="sentences")
    pairs = [(LINES[0] * 5, "It opened."), ("A museum.", "It opened.")]
    scores = StackScorer(base, written(tmp_path)).score_detailed(pairs)
    assert list(scores.errors) == [0] and np.isnan(scores.values[0]) and 0 <= scores.values[1] <= 1
    assert scores.errors[0].outcome == "rejected" and list(scores.parts) == [1]


def test_a_calibrator_of_another_base_is_refused(model: str, tmp_path: Path) -> None:
    path = Path(written(tmp_path))
    base = partial(MiniCheckFlanT5Scorer, model=model, device="cpu")
    calibrator = json.loads(path.read_text())
    for fitted_on in ({"model": "other", "revision": "r1"}, {"model": None, "revision": None}, identify(base)):
        path.write_text(json.dumps({**calibrator, "base": fitted_on}))
        if fitted_on["model"] == "other":
            with pytest.raises(ConfigurationError, match=r"fitted on scores of other at r1, .* give the base"):
                StackScorer.identify(base, str(path))
        else:
            assert StackScorer.identify(base, str(path))["base.model"] == model


def test_identity_names_base_and_file_without_loading_weights(model: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    base = partial(MiniCheckFlanT5Scorer, model=model, device="cpu")
    identity = StackScorer.identify(base, path)
    built = StackScorer(base, path)
    assert (identity["model"], identity["revision"]) == (built.model, built.revision)
    assert built.model == f"stack({model})" and identity["base.model"] == model
    written(tmp_path, numbers=3.0)
    assert StackScorer.identify(base, path)["revision"] != identity["revision"]
    with pytest.raises(ConfigurationError, match=r"scorer\.base\.colour is no field"):
        StackScorer.identify(partial(MiniCheckFlanT5Scorer, model=model, colour="red"), path)
    with pytest.raises(ConfigurationError, match="no calibrator"):
        StackScorer.identify(base, str(tmp_path / "none.json"))


def test_the_menu_entry_takes_any_base(tmp_path: Path) -> None:
    with hydra.initialize_config_module("conf", version_base=None):
        chosen = ["scorer=stack", "scorer@scorer.base=words", f"scorer.path={written(tmp_path, 'logistic')}"]
        scorer = instantiate(hydra.compose("verify", chosen).scorer, _convert_="all")
    assert identify(scorer)["model"] == "logistic(words-and-negation-heuristic)"
    supported, unverified = scorer().score_pairs(
        [("The ferry left.", "The ferry left."), ("A cat.", "The ferry left.")]
    )
    assert supported > 0.99 and unverified < 0.01
