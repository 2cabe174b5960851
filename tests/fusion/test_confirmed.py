"""The method ``fusion+nli``: what labels take away, what they are asked, and how a run is replayed."""

import doctest
import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_module
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.verify import plan_of
from tests.tiny_models import save_tiny
from verifier.errors import ConfigurationError
from verifier.fusion import Verdict
from verifier.fusion import confirmed as module
from verifier.fusion.confirmed import FusionNli, FusionNliPolicy, confirmed
from verifier.fusion.method import Fusion
from verifier.pipeline.actor import VerifyActor
from verifier.pipeline.dry import estimate
from verifier.protocol import Outcome, Pair, PairError, Scores, run_plan
from verifier.records import Basis, Claim, Evidence, GroupScore, Status
from verifier.results import read_results, record_of, scored_pairs
from verifier.schemas import WORK_SCHEMA, work_row
from verifier.scorers import RecordedScorer, RecordedSupportScorer
from verifier.scorers.base import ask_round, check_form, identify
from verifier.scorers.cosine import CosineScorer
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.fusion_nli import CosineAndLabels
from verifier.scorers.nli import EntailmentScorer
from verifier.scorers.offline import OfflineScorer
from verifier.scorers.recorded import RecordedFileScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer

Triple = tuple[float, float, float]
ENTAILED, CONTRADICTED, UNCLEAR = (0.9, 0.05, 0.05), (0.1, 0.85, 0.05), (0.3, 0.2, 0.5)
SPAN = "Ada Lund moved the archive from Graz to Bologna in May"


class Cosines:
    """The support of a premise as told, else 0.95."""

    model, revision, dtype = "cosines", "1", "float32"

    def __init__(self, support: Mapping[str, float] | None = None) -> None:
        self.support = support or {}

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [self.support.get(premise, 0.95) for premise, _ in pairs]


class Script:
    """Three labels by hypothesis; it keeps what it was asked, round by round."""

    model, revision, dtype = "script", "2", "float64"

    def __init__(self, labels: Mapping[str, Triple]) -> None:
        self.labels = labels
        self.asked: list[list[tuple[str, str]]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.asked.append(list(pairs))
        return np.array([self.labels[hypothesis] for _, hypothesis in pairs])


def policy(**fields: Any) -> FusionNliPolicy:
    return FusionNliPolicy(model="cosines + script", revision="r", **fields)


def claim(text: str, *passages: str, **fields: Any) -> Claim:
    evidence = tuple(Evidence(reference=f"p{number}", text=passage) for number, passage in enumerate(passages, 1))
    return Claim(**{"claim_id": text, "claim": text, "evidence": evidence, **fields})


def decide(
    claims: Sequence[Claim], labels: Mapping[str, Triple], support: Mapping[str, float] | None = None, **fields: Any
) -> tuple[list[Outcome], list[list[tuple[str, str]]]]:
    script = Script(labels)
    scorer = CosineAndLabels(Cosines(support), script)
    method = FusionNli(policy(**fields), "resolved")
    return run_plan(method.plan(claims), lambda pairs: ask_round(scorer, pairs, method.asks)), script.asked


@pytest.mark.parametrize(
    ("labels", "status"),
    [(ENTAILED, Status.SUPPORTED), (UNCLEAR, Status.INSUFFICIENT), (CONTRADICTED, Status.REFUTED)],
)
def test_a_swapped_name_is_supported_by_fusion_and_taken_away_by_labels(labels: Triple, status: Status) -> None:
    swapped = claim("Eva Lund moved the archive from Graz to Bologna in May", "the archive is old", SPAN)
    support = {"the archive is old": 0.4, SPAN: 0.97}
    alone = run_plan(
        Fusion(policy(), "resolved").plan([swapped]), lambda pairs: ask_round(Cosines(support), pairs, "support")
    )
    assert alone[0].verification is not None and alone[0].verification.status == Status.SUPPORTED
    (outcome,), asked = decide([swapped], {swapped.claim: labels}, support)
    record = outcome.verification
    assert record is not None and record.status == status and asked == [[(SPAN, swapped.claim)]]
    ids = (str(swapped.evidence[1].memory_id),)
    assert record.supporting_group == (ids if status == Status.SUPPORTED else ())
    assert record.refuting_group == (ids if status == Status.REFUTED else ())
    assert record.supporting_basis == (Basis.MODEL_ENTAILMENT if status == Status.SUPPORTED else None)
    assert record.refuting_basis == (Basis.MODEL_CONTRADICTION if status == Status.REFUTED else None)
    assert record.group_scores == (GroupScore(("p2",), ids, *labels),) and record.limitations == ()
    assert record.result_sha256 == record.computed_result_sha256()
    assert record.configuration_sha256 == policy().digest() != policy(entailment_threshold=0.9).digest()
    assert outcome.support == alone[0].support and outcome.pairs[:-1] == alone[0].pairs
    confirmation = outcome.pairs[-1]
    assert (confirmation.kind, confirmation.references, confirmation.premise) == ("confirmation", ("p2",), SPAN)
    assert confirmation.values == dict(zip(("entailment", "contradiction", "neutral"), labels, strict=True))


def test_only_the_best_passages_of_claims_that_are_partial_at_least_are_asked() -> None:
    near = {"alone": 0.8, "half": 0.6, "half too": 0.5, "edge": 0.5, "far": 0.49}
    claims = [claim(f"claim {name}", name) for name in ("alone", "edge", "far")]
    claims.insert(1, claim("claim half", "half too", "half"))
    labels = {one.claim: ENTAILED for one in claims} | {"claim edge": CONTRADICTED}
    outcomes, asked = decide(claims, labels, near, beta=1)
    assert asked == [[("alone", "claim alone"), ("half", "claim half"), ("edge", "claim edge")]]
    statuses = [outcome.verification and outcome.verification.status for outcome in outcomes]
    assert statuses == ["supported", "insufficient", "refuted", "insufficient"], "partial stays partial"
    assert [outcome.support for outcome in outcomes] == [0.8, 0.6, 0.5, 0.49]
    assert outcomes[3].verification is not None and outcomes[3].verification.group_scores == ()


def test_claims_without_a_candidate_ask_no_labels() -> None:
    claims = [claim("one"), claim("two", "two", requires_complete_set=True), claim("three", "far")]
    outcomes, asked = decide(claims, {}, {"far": 0.1})
    assert asked == []
    statuses = [outcome.verification and outcome.verification.status for outcome in outcomes]
    assert statuses == ["insufficient", "incomplete", "insufficient"]
    assert [outcome.verification and outcome.verification.model_called for outcome in outcomes] == [False, False, True]
    assert decide(claims[:2], {}) == (outcomes[:2], [])
    mixed, asked = decide([claim("four", "four"), *claims], {"four": ENTAILED}, {"far": 0.1})
    assert mixed[1:] == outcomes and asked == [[("four", "four")]], "whatever shares the batch"


def failing(kind: str, error: PairError) -> Callable[[Sequence[Pair]], Scores]:
    """Answers every pair, but for the first of the rounds of a kind."""
    scorer = CosineAndLabels(Cosines(), Script({"one": ENTAILED, "two": ENTAILED}))

    def score(pairs: Sequence[Pair]) -> Scores:
        scores = ask_round(scorer, pairs, "support+labels")
        if pairs[0].kind != kind:
            return scores
        scores.values[0] = np.nan
        return replace(scores, errors={0: error})

    return score


@pytest.mark.parametrize("kind", ["single", "confirmation"])
def test_a_claim_without_a_score_in_either_round_is_never_supported(kind: str) -> None:
    claims = [claim("one", "one", "one two"), claim("two", "two")]
    unscored = PairError("unscored", "timeout", "t")
    first, second = run_plan(FusionNli(policy(), "r").plan(claims), failing(kind, unscored))
    assert first.verification is not None and first.verification.status == Status.INSUFFICIENT
    assert first.verification.group_scores == () and first.verification.model_called
    assert (first.error, first.support) == (unscored, None)
    assert [pair.kind for pair in first.pairs] == ["single"] * (1 if kind == "single" else 2), "what was scored is kept"
    assert second.verification is not None and second.verification.status == Status.SUPPORTED
    rejected = PairError("rejected", "pair_too_long", "l")
    first, again = run_plan(FusionNli(policy(), "r").plan(claims), failing(kind, rejected))
    assert (first.verification, first.error, again) == (None, rejected, second)


def test_a_label_that_is_not_finite_leaves_the_claim_unscored() -> None:
    (outcome,), _ = decide([claim("one", "one")], {"one": (np.nan, 0.5, 0.5)})
    assert outcome.error is not None and outcome.error.code == "not_finite"
    assert outcome.verification is not None and outcome.verification.status == Status.INSUFFICIENT


ORDER = [Verdict.UNSUPPORTED, Verdict.PARTIAL, Verdict.SUPPORTED]
thresholds = st.floats(0.5, 1)


@given(st.sampled_from(ORDER), st.floats(0, 1), st.floats(0, 1), thresholds, thresholds)
def test_labels_never_give_support(
    verdict: Verdict, entailment: float, other: float, entails: float, contradicts: float
) -> None:
    rule = policy(entailment_threshold=entails, contradiction_threshold=contradicts)
    contradiction = other * (1 - entailment)
    found = confirmed(verdict, entailment, contradiction, rule)
    assert ORDER.index(found) <= ORDER.index(verdict)
    stays = entailment >= entails and contradiction < contradicts
    assert (found == Verdict.SUPPORTED) == (verdict == Verdict.SUPPORTED and stays)
    assert confirmed(found, entailment, contradiction, rule) == found
    assert confirmed(verdict, 1.0, 0.0, rule) == verdict
    assert confirmed(verdict, 0.0, 1.0, rule) == Verdict.UNSUPPORTED
    assert confirmed(Verdict.EVIDENCE_REDACTED, entailment, contradiction, rule) == Verdict.EVIDENCE_REDACTED


def test_the_worked_examples_of_the_rule() -> None:
    results = doctest.testmod(module)
    assert results.attempted >= 4 and not results.failed


@pytest.mark.parametrize("wrong", [{"entailment_threshold": 0.4}, {"contradiction_threshold": 1.1}, {"nli": 1}])
def test_wrong_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(**wrong)
    assert (policy().entailment_threshold, policy().contradiction_threshold, policy().beta) == (0.8, 0.8, 0.65)


@pytest.fixture
def own_gc() -> Iterator[None]:
    """An actor sets the garbage collector up for a process of its own."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def results_of(scorer: partial[Any], claims: Sequence[Claim], run_dir: Path) -> list[dict[str, Any]]:
    """What an actor makes of the claims, written as a run's results and read again."""
    rules = policy().model_copy(update={"revision": identify_revision(scorer)})
    work = pa.Table.from_pylist([work_row(number, one) for number, one in enumerate(claims)], schema=WORK_SCHEMA)
    table = VerifyActor(scorer, partial(FusionNli, rules), rules.model, 2, Mock())(work)
    (run_dir / "results").mkdir(parents=True)
    pq.write_table(table, run_dir / "results" / "one.parquet")
    return read_results(run_dir).to_dicts()


def identify_revision(scorer: partial[Any]) -> str:
    return str(scorer().revision)


def test_a_runs_own_pairs_replay_it_bit_for_bit(tmp_path: Path, own_gc: None) -> None:
    texts = ["Ada Lund moved", "Eva Lund moved", "Ada Lund moved the archive", "somebody slept"]
    claims = [claim(text, "Ada Lund slept", SPAN) for text in texts]
    labels = dict(zip(texts, [(1 / 3, 0.1, 2 / 3 - 0.1), CONTRADICTED, ENTAILED, ENTAILED], strict=True))
    support = {SPAN: 0.1 + 0.2 + 0.6, "Ada Lund slept": 1 / 3}
    scorer = partial(CosineAndLabels, partial(Cosines, support), partial(Script, labels))
    rows = results_of(scorer, claims, tmp_path / "run")
    assert [row["status"] for row in rows] == ["insufficient", "refuted", "supported", "insufficient"]
    assert {(pair["model"], pair["dtype"]) for row in rows for pair in row["pairs"]} == {
        ("cosines + script", "float32+float64")
    }
    # The same pair stands twice, with a cosine and with labels.
    scored_pairs(tmp_path / "run").write_parquet(tmp_path / "pairs.parquet")
    recorded = partial(
        CosineAndLabels,
        cosine=partial(RecordedSupportFileScorer, str(tmp_path / "run"), "cosines", "1"),
        labels=partial(RecordedFileScorer, str(tmp_path / "pairs.parquet"), "script", "2"),
    )
    again = results_of(recorded, claims, tmp_path / "again")
    for one, two in zip(rows, again, strict=True):
        assert record_of(one) == record_of(two) and one["support"] == two["support"]
        assert [{**pair, "dtype": ""} for pair in one["pairs"]] == [{**pair, "dtype": ""} for pair in two["pairs"]]


def test_two_scorers_are_held_as_one_and_named_without_loading_them(tmp_path: Path) -> None:
    save_tiny("deberta", tmp_path / "nli")
    factory = partial(
        CosineAndLabels, cosine=partial(CosineScorer), labels=partial(CrossEncoderScorer, model=str(tmp_path / "nli"))
    )
    identity, built = identify(factory), factory()
    assert (built.model, built.revision) == (identity["model"], identity["revision"])
    assert built.model == f"all-MiniLM-L6-v2 + {tmp_path / 'nli'}" and built.dtype == "float32"
    parts = {"cosine.model": built.cosine.model, "labels.revision": built.labels.revision}
    assert parts.items() <= identity.items()
    other = CosineAndLabels(built.cosine, RecordedScorer([], str(tmp_path / "nli"), "another"))
    assert other.model == built.model and other.revision != built.revision and other.dtype == "float32+recorded"
    with pytest.raises(ConfigurationError, match=r"scorer\.labels\.modle is no field"):
        CosineAndLabels.identify(partial(CosineScorer), partial(CrossEncoderScorer, modle="x"))


def test_a_round_goes_to_the_part_that_its_kind_asks_for() -> None:
    script = Script({"h": ENTAILED})
    scorer = CosineAndLabels(Cosines({"p": 0.25}), script)
    single, confirmation = (Pair(0, kind, ("a",), "p", "h") for kind in ("single", "confirmation"))
    assert ask_round(scorer, [single, single], "support+labels").values.tolist() == [0.25, 0.25] and not script.asked
    assert ask_round(scorer, [confirmation] * 2, "support+labels").values.tolist() == [list(ENTAILED)] * 2
    assert script.asked == [[("p", "h")]], "each distinct pair once"
    assert ask_round(script, [single], "labels").values.tolist() == [list(ENTAILED)]
    assert ask_round(script, [single], "support").values.tolist() == [0.9], "entailment in the place of support"


@pytest.mark.parametrize(
    ("scorer", "asks", "message"),
    [
        (partial(OfflineScorer), "support+labels", "OfflineScorer is one .* use scorer=fusion_nli"),
        (
            partial(CosineAndLabels, cosine=partial(CosineScorer), labels=partial(EntailmentScorer)),
            "support+labels",
            "EntailmentScorer gives one support score and .* three labels",
        ),
        (
            partial(CosineAndLabels, cosine=partial(CosineScorer), labels=partial(OfflineScorer)),
            "support",
            "CosineAndLabels is two, .* use another scorer",
        ),
    ],
)
def test_a_scorer_of_another_form_is_refused(scorer: partial[Any], asks: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_form(scorer, asks, "method=m")


def test_a_scorer_of_this_form_passes() -> None:
    for cosine in (CosineScorer, RecordedSupportScorer, OfflineScorer):
        check_form(
            partial(CosineAndLabels, cosine=partial(cosine), labels=partial(OfflineScorer)), "support+labels", "m"
        )


def composed(*overrides: str) -> Any:
    with initialize_config_module("conf", version_base=None):
        return compose("verify", ["method=fusion+nli", "output.dir=out", "tracking=none", *overrides])


def test_the_menu_builds_the_method_its_policy_and_both_scorers() -> None:
    config = composed()
    assert instantiate(config.method).func is FusionNli
    assert (FusionNli.name, FusionNli.asks) == ("fusion+nli", "support+labels")
    assert FusionNliPolicy(**{"model": "m", "revision": "r", **config.policy}) == FusionNliPolicy(
        model="m", revision="r"
    )
    keywords = instantiate(config.scorer, _convert_="all").keywords
    assert [keywords[name].func for name in ("cosine", "labels")] == [CosineScorer, OfflineScorer]
    recorded = composed(
        "scorer@scorer.cosine=recorded_support",
        "scorer.cosine.path=run",
        "scorer@scorer.labels=recorded",
        "scorer.labels.path=pairs.parquet",
    )
    keywords = instantiate(recorded.scorer, _convert_="all").keywords
    assert [keywords[name].func for name in ("cosine", "labels")] == [RecordedSupportFileScorer, RecordedFileScorer]
    assert (
        instantiate(composed("scorer@scorer.labels=cross_encoder", "scorer.labels.device=cpu").scorer)
        .keywords["labels"]
        .keywords["device"]
        == "cpu"
    )


def test_a_dry_run_sizes_what_the_labels_would_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_tiny("deberta", tmp_path / "nli")
    passages = [{"reference": "a", "text": "Ada moved."}, {"reference": "b", "text": "Ada moved the project."}]
    rows = [{"claim_id": f"c{n}", "claim": f"Ada moved {n}.", "evidence": passages} for n in range(3)]
    rows.append({"claim_id": "none", "claim": "Nobody moved.", "evidence": []})
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = ("data=claims", "data.path=claims.jsonl")
    labels = ("scorer@scorer.labels=cross_encoder", "scorer.labels.model=nli", "scorer.labels.revision=null")
    planned = estimate(plan_of(composed(*job, *labels)), lambda *_: None)
    assert (planned.claims, planned.pairs, planned.distinct, planned.later) == (4, 6, 6, 3)
    assert list(planned.models) == ["labels"] and planned.models["labels"]["inputs"] == 3
    with initialize_config_module("conf", version_base=None):
        alone = compose("verify", ["method=fusion", "output.dir=alone", "tracking=none", *job])
    planned = estimate(plan_of(alone), lambda *_: None)
    assert (planned.pairs, planned.later, planned.models) == (6, 0, {})
