import doctest
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifier import Claim, Evidence, VerificationPolicy, verify_claims
from verifier.scorers import offline_features
from verifier.scorers.base import DetailedScorer, checked_three_label
from verifier.scorers.offline import OfflineScorer
from verifier.scorers.offline_features import premise_segments

ENTAILED = [
    ("The server uses port 8080.", "The server uses port 8080."),
    (
        "Acme acquired Beta Corp in March 2021 for 500 million dollars.",
        "Acme acquired Beta Corp for 500 million dollars.",
    ),
    ("Paid 1,000 euros on 2026-03-05.", "1000 euros were paid on 5 March 2026."),
    ("1,000 euros were paid on 5 March 2026.", "1000 euros were paid on 2026-03-05."),
    ("The API does not support XML.", "The API does not support XML."),
    ("Not only the API but also the SDK supports XML.", "The SDK supports XML."),
    (
        "[E1] Heron is the build server.\n[E2] The build server stands in Oslo.",
        "Heron, the build server, stands in Oslo.",
    ),
    ("Die Bibliothek in Köpenick öffnet um 9 Uhr.", "Die Bibliothek in Köpenick öffnet um 9 Uhr."),
]
CONTRADICTED = [
    ("The server uses port 9090.", "The server uses port 8080."),
    ("Revenue was 1,200 dollars in 2020.", "Revenue was 1,300 dollars in 2020."),
    ("The team has seven engineers.", "The team has nine engineers."),
    ("The meeting is on Thursday.", "The meeting is on Tuesday."),
    ("The contract ends in May.", "The contract ends in June."),
    ("On 4 May the pump was replaced.", "The pump was replaced on 5 May."),
    ("900 pumps were sold in May.", "5 pumps were sold in May."),
    ("The fair was held on 4 June 2020.", "The fair was held on 2020-06-07."),
    ("The server no longer uses port 8080.", "The server uses port 8080."),
    ("It is not true that the API supports XML.", "The API supports XML."),
    ("The API supports XML.", "The API doesn’t support XML."),
    ("Поезд из Твери прибывает на платформу 2.", "Поезд из Твери прибывает на платформу 5."),
]
NEUTRAL = [
    ("The API supports JSON and YAML.", "Revenue grew by ten percent in Oslo."),
    ("Bob Stone manages the billing team.", "The billing team is managed by Alice Ray."),
    ("The weather was fine.", "The weather was measured at 1,000 stations in 2020."),
    ("The server is painted green.", "The server uses port 8080."),
    ("🙂", "The server uses port 8080."),
    ("The server uses port 8080.", "🙂"),
]


@pytest.fixture(scope="module")
def scorer() -> OfflineScorer:
    return OfflineScorer(device="cpu")


@pytest.mark.parametrize(("column", "pairs"), list(enumerate([ENTAILED, CONTRADICTED, NEUTRAL])))
def test_examples_of_each_label_pass_the_default_threshold(
    scorer: OfflineScorer, column: int, pairs: list[tuple[str, str]]
) -> None:
    rows = scorer.score(pairs)
    assert [pair for pair, row in zip(pairs, rows, strict=True) if row[column] <= 0.8] == []


def test_a_detail_is_found_in_a_long_passage(scorer: OfflineScorer) -> None:
    filler = " ".join(f"Visitor {number} wrote a line in the guest book." for number in range(200))
    premise = f"{filler} The Halvard dish observes pulsars. {filler}"
    (entailed, refuted, _), (absent, *_) = scorer.score(
        [(premise, "The Halvard dish observes pulsars."), (filler, "The Halvard dish observes pulsars.")]
    )
    assert entailed > 0.8 > 0.1 > refuted
    assert absent < 0.1


def test_scores_hardly_depend_on_the_batch_or_its_order(scorer: OfflineScorer) -> None:
    pairs = ENTAILED + CONTRADICTED + NEUTRAL
    together = scorer.score(pairs)
    fresh = OfflineScorer(device="cpu", cache_size=1)
    np.testing.assert_allclose(fresh.score(pairs[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([fresh.score([pair]) for pair in pairs]), together, atol=1e-5)
    np.testing.assert_array_equal(fresh.score(pairs[:1] * 3), fresh.score(pairs[:1]).repeat(3, axis=0))


def test_an_empty_batch_is_no_rows(scorer: OfflineScorer) -> None:
    assert scorer.score([]).shape == (0, 3)


def test_segments_are_embedded_once_and_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    small = OfflineScorer(device="cpu", cache_size=3)
    asked: list[list[str]] = []
    embed = small._embedder.embed
    monkeypatch.setattr(small._embedder, "embed", lambda texts: (asked.append(list(texts)), embed(texts))[1])
    small.score([("One fact. Two facts.", "A claim."), ("Two facts. One fact.", "A claim.")])
    small.score([("Two facts.", "A claim.")])
    assert [sorted(texts) for texts in asked] == [["A claim.", "One fact.", "Two facts."], []]
    small.score([("Three facts. Four facts. Five facts. Six facts.", "A claim.")])
    assert len(small._cache) == 3


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    [text for pair in ENTAILED + CONTRADICTED for text in pair]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, texts), max_size=4))
def test_any_text_gets_a_valid_distribution(scorer: OfflineScorer, pairs: list[tuple[str, str]]) -> None:
    rows = checked_three_label(scorer.score(pairs), len(pairs))
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)


def test_it_names_itself_a_heuristic_and_its_weights(scorer: OfflineScorer) -> None:
    assert isinstance(scorer, DetailedScorer)
    assert "heuristic" in scorer.model
    assert scorer.revision == f"{scorer._embedder.revision}+formula-2"
    scores = scorer.score_detailed(ENTAILED[:2])
    assert scores.windows.tolist() == [1, 1]
    np.testing.assert_array_equal(scores.values, scorer.score(ENTAILED[:2]))


def test_it_verifies_claims_end_to_end(scorer: OfflineScorer) -> None:
    policy = VerificationPolicy(model=scorer.model, revision=scorer.revision)
    evidence = (
        Evidence("a", "The Felix depot does not accept refrigerated trailers."),
        Evidence("b", "The chapel is older than the harbour."),
    )
    claims = [
        Claim("1", "The Felix depot accepts refrigerated trailers.", evidence),
        Claim("2", "The chapel is older than the harbour.", evidence),
        Claim("3", "The mayor plays the violin.", evidence),
    ]
    found = [verification.status.value for verification in verify_claims(claims, scorer, policy)]
    assert found == ["refuted", "supported", "insufficient"]


def test_segments_are_cut_at_sentences_semicolons_and_length() -> None:
    assert premise_segments("[E1] One. Two; three\n[E2] Four.") == ["One.", "Two", "three", "Four."]
    assert premise_segments(" \n ") == []
    text = "word " * 300 + "x" * 1200
    pieces = premise_segments(text)
    assert max(map(len, pieces)) <= 500
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def test_reading_is_linear_in_a_passage_without_punctuation() -> None:
    def seconds(length: int) -> float:
        text = "not the word - and " * length
        start = time.process_time()
        for piece in premise_segments(text):
            offline_features.features(piece, np.zeros(3, np.float32))
        return time.process_time() - start

    seconds(100)
    assert seconds(40_000) < 20 * max(seconds(4_000), 0.02)


def test_the_examples_of_the_docstrings_hold() -> None:
    results = doctest.testmod(offline_features)
    assert results.attempted > 0
    assert results.failed == 0
