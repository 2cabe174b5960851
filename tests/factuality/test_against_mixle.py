"""Beside the published package, on fresh cases: the claims, the verdicts and the receipts are the same."""

import random
from collections import Counter

import pytest

from tests.factuality.cases import ALL_WORDS, generate
from verifier.factuality import check_factuality, corroborate, sentence_claims

pytest.importorskip("mixle", reason="the optional extra 'peers' is not installed")
from mixle.reason.llm import sentence_claims as published_claims
from mixle.substrate import Substrate
from mixle.substrate import check_factuality as published_check
from mixle.substrate.factuality import _default_corroborates as published_verdict

CASES = generate(5_000, seed=20261203)


def test_five_thousand_fresh_verdicts_agree() -> None:
    assert [case for case in CASES if corroborate(*case).value != published_verdict(*case).value] == []


def test_the_cases_use_the_whole_vocabulary_and_reach_every_verdict() -> None:
    texts = "\n".join(evidence for evidence, _ in CASES)
    assert [word for word in ALL_WORDS if word not in texts] == []
    verdicts = Counter(corroborate(*case).value for case in CASES)
    assert min(verdicts.values()) > 700
    assert len(verdicts) == 3


def test_five_thousand_fresh_texts_are_split_alike() -> None:
    texts = [evidence for evidence, _ in CASES]
    assert [text for text in texts if sentence_claims(text) != published_claims(text)] == []


def test_receipts_over_their_own_store_are_the_same() -> None:
    chance = random.Random(7)
    store = Substrate()  # small: each text that is added costs it a tenth of a second
    for pair in chance.sample(CASES, 15):
        for text in pair:
            store.add("text", text, scope=chance.choice(["team", "other"]))
    fractions = set()
    for _ in range(60):
        answer = "\n".join(item.text for item in chance.sample(store.all(), 2)) + "\n" + chance.choice(CASES)[1]
        limits = {"min_score": chance.choice([0.2, 0.5, -1.0]), "k": chance.randint(1, 6)}
        scope = chance.choice([None, "team"])
        ours = check_factuality(store, answer, **limits, scope=scope).as_dict()
        assert ours == published_check(store, answer, **limits, scope=scope).as_dict()
        fractions.add(ours["grounded_fraction"])
    assert len(fractions) > 5
