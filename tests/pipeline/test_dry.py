"""What a dry run counts of later rounds: what the policy could ask, or all that an exhaustive search could."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module

from jobs.verify import plan_of
from tests.pipeline.runs import claim, write
from verifier.pipeline.dry import estimate


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
