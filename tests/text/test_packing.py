import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.test_windows import OFFSETS, TEXTS, count, packed
from tests.tiny_models import LINES, TOKENIZERS
from verifier.text.packing import pack_lines, pack_sentences, pack_words, sentences

BY_SENTENCES = {
    "lines": lambda text, limit: pack_lines(text, limit, lambda piece: len(piece.split())),
    "sentences": pack_sentences,
}
NASTY = {
    "words": "word " * 10_000, "run": "x" * 30_000, "cjk": "東京都は日本の首都です。" * 3_000,
    "emoji": "👩‍👩‍👧" * 4_000,
    "brackets": "(" * 20_000, "open quotes": "“No. " * 10_000, "spaces": "Yes." + " " * 50_000 + "no " * 900,
    "lines": "a\n" * 10_000, "line ends": "a\n" + "\n" * 30_000 + "b", "dots": ". " * 15_000,
}  # fmt: skip


def words_of(piece: str) -> int:
    return len(piece.split())


@given(text=TEXTS)
def test_sentences_are_slices_that_make_up_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@pytest.mark.parametrize("name", NASTY)
def test_sentences_of_long_texts_make_up_the_text(name: str) -> None:
    pieces = list(sentences(NASTY[name]))
    assert "".join(pieces) == NASTY[name]
    assert max(map(len, pieces)) <= 1 << 14


def test_a_sentence_may_lie_across_blocks() -> None:
    text = "The museum drew many visitors in its first year. " * 2_000
    assert [piece.strip() for piece in sentences(text)] == ["The museum drew many visitors in its first year."] * 2_000


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, limit=st.integers(1, 20), rule=st.sampled_from(sorted(BY_SENTENCES)))
def test_chunks_hold_every_word_once_in_order(text: str, limit: int, rule: str) -> None:
    chunks = BY_SENTENCES[rule](text, limit)
    assert packed("".join(chunks)) == packed(text)
    assert all(chunk == chunk.strip() != "" for chunk in chunks)
    borders = pairwise(sentences(text))
    if all(before[-1].isspace() or after[0].isspace() for before, after in borders):
        assert [word for chunk in chunks for word in chunk.split()] == text.split()


@settings(max_examples=150, deadline=None)
@given(text=st.lists(st.sampled_from(LINES), max_size=8).map("\n".join), limit=st.integers(1, 60))
def test_chunks_stay_within_the_limit_unless_one_sentence_is_beyond_it(text: str, limit: int) -> None:
    for chunk in pack_lines(text, limit, words_of):
        assert words_of(chunk) <= limit or len(list(sentences(chunk))) == 1


@pytest.mark.parametrize("rule", BY_SENTENCES)
@pytest.mark.parametrize("name", NASTY)
def test_long_nasty_texts_are_packed(name: str, rule: str) -> None:
    chunks = BY_SENTENCES[rule](NASTY[name], 100)
    assert packed("".join(chunks)) == packed(NASTY[name])


def test_the_sentences_of_a_line_are_joined_by_a_space_and_lines_by_their_ends() -> None:
    text = "One two.   Three four.\nFive six seven.\n\n\nEight. Nine.\r\nTen."
    assert pack_lines(text, 100, words_of) == ["One two. Three four.\nFive six seven.\n\n\nEight. Nine.\nTen."]
    assert pack_lines(text, 4, words_of) == ["One two. Three four.", "Five six seven.\n\n\nEight.", "Nine.\nTen."]
    assert pack_lines(text, 2, words_of) == ["One two.", "Three four.", "Five six seven.", "Eight. Nine.", "Ten."]


def test_sentences_are_joined_by_newlines_and_counted_in_word_tokens() -> None:
    text = "It did not open. It didn't (really) open.\nSo they say."
    # The full stop, the brackets and the n't are word tokens of their own: 5, 8 and 4.
    assert pack_sentences(text, 17) == ["It did not open.\nIt didn't (really) open.\nSo they say."]
    assert pack_sentences(text, 16) == ["It did not open.\nIt didn't (really) open.", "So they say."]
    assert pack_sentences(text, 12) == ["It did not open.", "It didn't (really) open.\nSo they say."]
    assert pack_sentences(text, 11) == ["It did not open.", "It didn't (really) open.", "So they say."]


def test_a_border_inside_a_word_stays_without_a_gap() -> None:
    text = "東京都は日本の首都です。はい。"
    assert len(list(sentences(text))) == 2
    assert pack_lines(text, 9, words_of) == [text]
    assert pack_sentences(text, 9) == [text]


@settings(max_examples=250, deadline=None)
@given(text=TEXTS, budget=st.integers(1, 40), family=st.sampled_from(TOKENIZERS))
def test_word_windows_are_the_longest_that_fit(text: str, budget: int, family: str) -> None:
    windows = pack_words(text, OFFSETS[family], lambda piece: count(family, piece), budget)
    words = text.split()
    assert " ".join(windows) == " ".join(words)
    start = 0
    for window in windows:
        size = words_of(window)
        assert count(family, window) <= budget or size == 1
        if start + size < len(words):
            assert count(family, " ".join(words[start : start + size + 1])) > budget
        start += size


def test_a_counter_that_differs_from_the_offsets_rules() -> None:
    text = " ".join(LINES * 20)
    for factor, more in ((1, 30), (3, 0), (1, -20)):
        asked: list[int] = []

        def counted(piece: str, factor: int = factor, more: int = more, asked: list[int] = asked) -> int:
            asked.append(len(piece))
            return factor * count("bert", piece) + more

        windows = pack_words(text, OFFSETS["bert"], counted, 60)
        assert sum(asked) <= 20 * len(text)
        assert all(counted(window) <= 60 for window in windows)
        follows = [f"{a} {b.split()[0]}" for a, b in pairwise(windows)]
        assert all(counted(window) > 60 for window in follows)


@pytest.mark.parametrize("family", TOKENIZERS)
@pytest.mark.parametrize("name", NASTY)
def test_long_nasty_texts_are_cut_in_linear_work(name: str, family: str) -> None:
    text, asked = NASTY[name], 0

    def counted(piece: str) -> int:
        nonlocal asked
        asked += len(piece)
        return count(family, piece)

    windows = pack_words(text, OFFSETS[family], counted, 100)
    assert " ".join(windows) == " ".join(text.split())
    assert all(count(family, window) <= 100 or words_of(window) == 1 for window in windows)
    assert asked <= 5 * len(text)


def test_windows_hold_normalized_white_space() -> None:
    def spans(text: str) -> np.ndarray:
        return np.array([match.span() for match in re.finditer(r"\S+", text)], dtype=np.int64).reshape(-1, 2)

    assert pack_words("  one\n\ntwo\tthree   four five ", spans, words_of, 2) == ["one two", "three four", "five"]
    assert pack_words("one", spans, words_of, 0) == ["one"]
