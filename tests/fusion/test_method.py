"""The method ``fusion``: what is asked, what decides, and what is recorded for a replay."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_module
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from pydantic import ValidationError

from tests.fusion.drafts import WordEmbedder, draft_of, texts
from verifier.fusion import FusionConfig, PlanIdf, lexical_coverage, match_drafts, pair_score, tokenize
from verifier.fusion.method import Fusion
from verifier.fusion.policy import FusionPolicy
from verifier.protocol import Outcome, Pair, PairError, Part, Scores, run_plan
from verifier.records import Claim, Evidence, Status
from verifier.results import result_row, results_table
from verifier.scorers import RecordedSupportScorer
from verifier.scorers.base import support_round
from verifier.scorers.cosine import CosineScorer

Support = Callable[[str, str], float]


def policy(**fields: Any) -> FusionPolicy:
    return FusionPolicy(model="m", revision="r", **fields)


def claim(text: str, *passages: str, **fields: Any) -> Claim:
    evidence = tuple(Evidence(reference=f"p{number}", text=passage) for number, passage in enumerate(passages, 1))
    return Claim(**{"claim_id": "c", "claim": text, "evidence": evidence, **fields})


def decide(claims: Sequence[Claim], rules: FusionPolicy, support: Support) -> tuple[list[Outcome], list[list[Pair]]]:
    rounds: list[list[Pair]] = []

    def score(pairs: Sequence[Pair]) -> Scores:
        rounds.append(list(pairs))
        return Scores.whole(np.array([support(pair.premise, pair.hypothesis) for pair in pairs]))

    return run_plan(Fusion(rules, "resolved").plan(claims), score), rounds


def test_every_passage_is_asked_once_and_the_best_one_decides() -> None:
    asked = claim("the port is 8080", "the port is 9090", "port 8080 is the port", "unrelated")
    near = {"the port is 9090": 0.95, "port 8080 is the port": 0.9, "unrelated": 0.1}
    (outcome,), rounds = decide([asked], policy(), lambda premise, _: near[premise])
    assert [(p.row, p.kind, p.references, p.premise, p.hypothesis) for p in rounds[0]] == [
        (0, "single", (item.reference,), item.text, asked.claim) for item in asked.evidence
    ]
    assert len(rounds) == 1
    record = outcome.verification
    assert record is not None and record.status == Status.SUPPORTED
    assert record.supporting_group == (str(asked.evidence[1].memory_id),)
    assert record.result_sha256 == record.computed_result_sha256() and record.resolved_revision == "resolved"
    assert record.configuration_sha256 == policy().digest() != policy(beta=0.6).digest()
    assert outcome.support == pytest.approx(pair_score(0.9, 1.0, 0.65, False), abs=1e-12)
    gates = [pair.values["gate_tripped"] for pair in outcome.pairs]
    assert gates == [True, False, True]
    assert all(set(pair.values) == {"cosine", "lexical", "gate_tripped", "support"} for pair in outcome.pairs)


passages = st.lists(texts, min_size=1, max_size=5)
cosine_values = st.floats(0, 1)


@given(st.lists(st.tuples(texts, passages, st.booleans()), max_size=4), st.integers(1, 3), st.randoms(), st.data())
def test_the_score_of_a_claim_is_that_of_the_formulas(
    rows: list[Any], limit: int, random: Any, data: st.DataObject
) -> None:
    claims = [claim(text, *of, claim_id=f"c{n}", requires_complete_set=flag) for n, (text, of, flag) in enumerate(rows)]
    near = {(p, c.claim): data.draw(cosine_values) for c in claims for p in sorted({e.text for e in c.evidence})}
    rules = policy(candidates_m=limit)
    outcomes, _ = decide(claims, rules, lambda *pair: near[pair])
    for one, outcome in zip(claims, outcomes, strict=True):
        if one.requires_complete_set:
            assert outcome.support is None and outcome.pairs == ()
            continue
        idf = PlanIdf([tokenize(item.text) for item in one.evidence])
        cosines = [near[item.text, one.claim] for item in one.evidence]
        candidates = sorted(range(len(cosines)), key=lambda n: (-cosines[n], n))[:limit]
        scores = {}
        for n, (item, pair) in enumerate(zip(one.evidence, outcome.pairs, strict=True)):
            lexical = lexical_coverage(tokenize(one.claim), tokenize(item.text), idf)
            assert pair.values["cosine"] == pair.values["support"] == cosines[n]
            assert pair.values["lexical"] == pytest.approx(lexical, abs=1e-12)
            tripped = bool(pair.values["gate_tripped"])
            scores[n] = round(pair_score(cosines[n], lexical, 0.65, tripped), 12)
        best = max(scores[n] for n in candidates)
        assert outcome.support == pytest.approx(best, abs=2e-12)
        assert outcome.verification is not None
        assert (outcome.verification.status == Status.SUPPORTED) == (best >= 0.75)
    order = list(range(len(claims)))
    random.shuffle(order)
    again, _ = decide([claims[n] for n in order], rules, lambda *pair: near[pair])
    assert again == [outcomes[n] for n in order], "bit for bit, whatever the batch"


def test_a_method_and_a_matcher_agree() -> None:
    spans = ["alpha beta 5", "gamma delta", "alpha 0005 the"]
    embedder = WordEmbedder()
    (found,) = match_drafts([draft_of(["alpha beta 5.0"], spans)], embedder, FusionConfig())

    def support(premise: str, hypothesis: str) -> float:
        one, two = embedder.embed([premise, hypothesis]).astype(np.float64)
        return float(np.round(np.clip(one @ two, 0, 1), 12))

    (outcome,), _ = decide([claim("alpha beta 5.0", *spans)], policy(), support)
    assert outcome.support == found.claims[0].score
    assert [pair.values["lexical"] for pair in outcome.pairs] == [c.lexical for c in found.claims[0].candidates]


@pytest.mark.parametrize(
    ("cosine", "status"), [(0.75, Status.SUPPORTED), (0.74, Status.INSUFFICIENT), (0.3, Status.INSUFFICIENT)]
)
def test_a_partial_claim_is_insufficient_and_its_score_says_so(cosine: float, status: Status) -> None:
    rules = policy(beta=1)
    (outcome,), _ = decide([claim("a claim", "a passage")], rules, lambda *_: cosine)
    assert outcome.verification is not None and outcome.verification.status == status
    assert outcome.support == cosine
    assert rules.band(cosine) == {0.75: "supported", 0.74: "partial", 0.3: "unsupported"}[cosine]


def test_no_evidence_and_complete_sets_ask_no_model() -> None:
    claims = [claim("a claim"), claim("a claim", "one", requires_complete_set=True)]
    outcomes, rounds = decide(claims, policy(), lambda *_: 1.0)
    assert rounds == []
    records = [outcome.verification for outcome in outcomes]
    assert [record and record.status for record in records] == [Status.INSUFFICIENT, Status.INCOMPLETE]
    assert all(record and not record.model_called and record.resolved_revision is None for record in records)
    mixed, _ = decide([*claims, claim("one", "one", claim_id="d")], policy(), lambda *_: 1.0)
    assert mixed[:2] == outcomes and mixed[2].support == 1.0


def test_an_unscored_pair_never_supports_and_a_rejected_one_has_no_record() -> None:
    failures = {1: PairError("unscored", "timeout", "t"), 3: PairError("rejected", "pair_too_long", "l")}

    def score(pairs: Sequence[Pair]) -> Scores:
        return replace(Scores.whole(np.array([0.9, np.nan, 1.0, np.nan])), errors=failures)

    claims = [claim("one", "one", claim_id="a"), claim("one", "one", "one two", claim_id="b")]
    claims.append(claim("one", "one", claim_id="c"))
    good, unscored, rejected = run_plan(Fusion(policy(), "r").plan(claims), score)
    assert good.verification is not None and good.verification.status == Status.SUPPORTED
    assert unscored.verification is not None and unscored.verification.status == Status.INSUFFICIENT
    assert (unscored.error, unscored.support) == (failures[1], None)
    assert [pair.values["cosine"] for pair in unscored.pairs] == [1.0], "what was scored is kept"
    assert (rejected.verification, rejected.error) == (None, failures[3])


def test_windows_and_members_stand_behind_the_pair_and_a_run_can_be_replayed() -> None:
    parts = (Part("a", 0, 2, 0.3), Part("a", 1, 2, 0.7), Part("b", 0, 1, 0.9))

    def score(pairs: Sequence[Pair]) -> Scores:
        whole = Scores.whole(np.array([0.7, 0.2]))
        windows, window = np.array([2, 1], np.int32), np.array([1, 0], np.int32)
        return replace(whole, parts={0: parts}, windows=windows, window=window)

    asked = claim("one two", "one two 3", "two")
    (outcome,) = run_plan(Fusion(policy(), "r").plan([asked]), score)
    rows = [(pair.kind, pair.member, pair.window, pair.windows, pair.values["support"]) for pair in outcome.pairs]
    behind = [("window", p.member, p.window, p.windows, p.support) for p in parts]
    assert rows == [("single", None, 1, 2, 0.7), *behind, ("single", None, 0, 1, 0.2)]
    recorded = [(p.premise, p.hypothesis, p.values["support"]) for p in outcome.pairs if p.kind == "single"]
    scorer = RecordedSupportScorer(recorded)
    (again,) = run_plan(Fusion(policy(), "r").plan([asked]), lambda pairs: support_round(scorer, pairs))
    assert (again.support, again.verification) == (outcome.support, outcome.verification)
    row = result_row(
        {"row_id": 0, "claim_id": "c"}, outcome, method="fusion", model="m", revision="r", dtype="f", seconds=0
    )
    pair = results_table([row]).to_pylist()[0]["pairs"][0]
    assert (pair["cosine"], pair["support"], pair["gate_tripped"]) == (0.7, 0.7, False)
    assert pair["lexical"] == 1.0 and pair["entailment"] is None


def test_the_menu_builds_the_method_its_policy_and_the_scorer() -> None:
    with initialize_config_module("conf", version_base=None):
        config = compose("verify", ["method=fusion"])
        other = compose("verify", ["method=fusion", "scorer=recorded_support", "scorer.path=x", "policy.beta=0.5"])
    method = instantiate(config.method)
    assert method.func is Fusion and (Fusion.name, Fusion.asks) == ("fusion", "support")
    fields = OmegaConf.to_container(config.policy)
    assert FusionPolicy(model="m", revision="r", **fields) == policy()  # type: ignore[arg-type]
    assert instantiate(config.scorer).func is CosineScorer
    assert other.policy.beta == 0.5 and other.scorer._target_.endswith("RecordedSupportFileScorer")


@pytest.mark.parametrize("wrong", [{"beta": 2}, {"max_evidence": 0}, {"partial": 0.9}, {"policy": "flag"}])
def test_wrong_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(**wrong)
