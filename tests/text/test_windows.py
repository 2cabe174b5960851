import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny_models import TOKENIZERS, tokenizer
from verifier.errors import PairTooLong
from verifier.text.windows import sentence_ends, split_windows, tokenizer_offsets

OFFSETS = {family: tokenizer_offsets(tokenizer(family).backend_tokenizer) for family in TOKENIZERS}

PIECES = st.sampled_from(
    ["The museum opened. ", "It did not! ", "Why? (Nobody knows.) ", "visitors ", "20,000 ", "a.b.c ", "end. lower ",
     "\n", "\r\n", "\n\n", "  ", "\u00a0", "\u2028", "\x1c", "\t", "東京都は日本の首都です。", "日本",
     "👩‍👩‍👧", "🇫🇷", "e\u0301",
     "ﬁ", "㍿", "…", "\u200b", "[SEP]", "</s>", "Straße ",
     "x" * 60, "((((\"", ". ", "\ufffd", "İ", "عربى ", "\u0300" * 3]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=120))


def count(family: str, text: str) -> int:
    return len(OFFSETS[family](text))


def packed(text: str) -> str:
    return "".join(text.split())


def sentences(text: str) -> list[str]:
    """The segment rule, written the simple way."""
    parts = re.split(r"(?:\r?\n)+|(?<=[.!?])\s+(?=[\"'(\[{]*[A-Z0-9])", text)
    return [part.strip() for part in parts if part.strip()]


@settings(max_examples=250, deadline=None)
@given(text=TEXTS, budget=st.integers(1, 40), family=st.sampled_from(TOKENIZERS))
def test_windows_hold_every_word_once_within_the_budget(text: str, budget: int, family: str) -> None:
    try:
        windows = split_windows(text, OFFSETS[family], budget)
    except PairTooLong:
        assert max(count(family, character) for character in text) > budget
        return
    assert packed("".join(windows)) == packed(text)
    assert max(count(family, window) for window in windows) <= budget
    position = 0
    for window in windows:
        position = text.index(window, position) + len(window)
    if all(count(family, word) <= budget for word in text.split()):
        assert [word for window in windows for word in window.split()] == text.split()
    if all(count(family, sentence) <= budget for sentence in sentences(text)):
        assert [sentence for window in windows for sentence in sentences(window)] == sentences(text)


@given(text=TEXTS)
def test_sentence_ends_follow_the_segment_rule(text: str) -> None:
    ends = sentence_ends(text)
    assert ends == sorted(ends) and ends[-1] == len(text)
    cuts = [0, *ends]
    found = [text[start:end].strip() for start, end in zip(cuts, ends, strict=False)]
    assert [sentence for sentence in found if sentence] == sentences(text)


def test_a_text_that_fits_comes_back_whole() -> None:
    assert split_windows(" The museum opened. ", OFFSETS["bert"], 50) == [" The museum opened. "]


def test_sentences_are_packed_greedily() -> None:
    one_each = "One two three. Four five six. Seven eight nine. Ten."

    def words(text: str) -> np.ndarray:
        return np.array([match.span() for match in re.finditer(r"\S+", text)], dtype=np.int64).reshape(-1, 2)

    assert split_windows(one_each, words, 6) == ["One two three. Four five six.", "Seven eight nine. Ten."]
    assert split_windows(one_each, words, 3) == ["One two three.", "Four five six.", "Seven eight nine.", "Ten."]
    assert split_windows(one_each, words, 2)[:3] == ["One two", "three.", "Four five"]


def test_a_counter_that_counts_more_than_the_offsets_rules() -> None:
    text = "The museum opened in 1995. " * 30
    windows = split_windows(text, OFFSETS["roberta"], 40, lambda piece: 2 * count("roberta", piece) + 3)
    assert max(2 * count("roberta", window) + 3 for window in windows) <= 40
    assert packed("".join(windows)) == packed(text)
    assert len(windows) <= 30


@pytest.mark.parametrize("family", TOKENIZERS)
@pytest.mark.parametrize(
    "text",
    ["word " * 10_000, "x" * 30_000, "東京都" * 8_000, "👩‍👩‍👧" * 4_000, "(" * 20_000, ". " + '"' * 20_000,
     "Yes. " * 6_000, "Yes." + " " * 50_000 + "no " * 900, "a\n" * 10_000, ". " * 15_000],
    ids=["words", "run", "cjk", "emoji", "brackets", "quotes", "sentences", "spaces", "lines", "dots"],
)  # fmt: skip
def test_long_nasty_texts_are_cut_in_linear_work(text: str, family: str) -> None:
    asked = 0

    def offsets(piece: str) -> np.ndarray:
        nonlocal asked
        asked += len(piece)
        return OFFSETS[family](piece)

    windows = split_windows(text, offsets, 100)
    assert packed("".join(windows)) == packed(text)
    sizes = [count(family, window) for window in windows]
    assert max(sizes) <= 100
    assert asked <= 5 * len(text)
    whole = count(family, text)
    assert len(windows) <= 1 + 2 * max(whole, sum(sizes)) / 100


def test_a_character_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(PairTooLong, match="alone has"):
        split_windows("👩 and more", OFFSETS["roberta"], 2)
    with pytest.raises(PairTooLong):
        split_windows("word", OFFSETS["bert"], 0)
