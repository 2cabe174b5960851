"""What a dry run counts: the pairs of later rounds, and the tokens of the models that a scorer asks."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module

from jobs.verify import plan_of
from tests.pipeline.runs import claim, write
from tests.tiny_models import save_tiny_flan_t5
from verifier.errors import ConfigurationError
from verifier.pipeline.dry import estimate
from verifier.pipeline.run import Dry
from verifier.tracking import Tracking
from verifier.validation import built


@pytest.mark.parametrize(
    ("overrides", "later"),
    [
        (("policy.max_group_size=1",), 0),
        (("policy.max_group_size=2", "policy.group_candidate_limit=3"), 3),
        (("policy.max_group_size=1", "search.exhaustive=true"), 10 + 10),
        (("search.exhaustive=true", "search.max_group_size=2", "search.group_candidate_limit=4"), 6),
    ],
)
def test_pairs_of_later_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], later: int
) -> None:
    monkeypatch.chdir(tmp_path)
    evidence = [{"reference": f"m{n}", "text": f"Passage {n}."} for n in range(5)]
    write(tmp_path / "claims.jsonl", [claim(0, evidence=evidence), claim(1, evidence=[])])
    with initialize_config_module("conf", version_base=None):
        cfg = compose("verify", ["data=claims", "data.path=claims.jsonl", "output.dir=out", *overrides])
    planned = estimate(plan_of(cfg), lambda *_: None)
    assert (planned.claims, planned.pairs, planned.later) == (2, 5, later)


def test_the_model_within_a_stack_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "claims.jsonl", [claim(0)])
    (tmp_path / "calibrator.json").write_text('{"kind": "isotonic", "x": [0, 1], "y": [0, 1]}')
    model = save_tiny_flan_t5(tmp_path / "flan")
    stack = ("scorer=stack", "scorer.path=calibrator.json", f"scorer.base.model={model}", "scorer.base.revision=null")
    with initialize_config_module("conf", version_base=None):
        cfg = compose("verify", ["method=grounding", "data=claims", "data.path=claims.jsonl", "output.dir=out", *stack])
    planned = estimate(plan_of(cfg), lambda *_: None)
    assert planned.models["base"]["tokens"] > 10


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Dry, "dry", "false"),
        *((Dry, "pairs_per_second", value) for value in ("7", True, 0, -1, float("nan"), float("inf"), 1e-320)),
        (Tracking, "enabled", "false"),
    ],
)
def test_settings_that_would_be_taken_for_something_else(kind: type, name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} is"):
        built(kind, {name: value}, "run")


def test_the_rate_of_an_actor() -> None:
    assert [built(Dry, {"pairs_per_second": rate}, "run").pairs_per_second for rate in (7, 0.5)] == [7, 0.5]
