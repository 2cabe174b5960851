import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from verifier.scorers.batching import pad_batch, size_chunks, token_batches

LENGTHS = st.lists(st.integers(0, 600), max_size=200)


@given(lengths=LENGTHS, budget=st.integers(1, 20_000))
def test_every_item_is_in_one_batch_within_budget_and_little_padding(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        sizes = [lengths[index] for index in batch]
        cells = max(sizes) * len(sizes)
        assert len(batch) == 1 or cells <= budget
        assert cells - sum(sizes) <= max(0.05 * cells, budget // 128)
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(lengths, reverse=True)


def test_equal_items_fill_the_budget() -> None:
    assert [len(batch) for batch in token_batches([10] * 25, 100)] == [10, 10, 5]


def test_ties_keep_the_order_of_the_items() -> None:
    assert np.concatenate(token_batches([3, 5, 3, 5], 6)).tolist() == [1, 3, 0, 2]


def test_short_items_do_not_fall_apart() -> None:
    assert len(token_batches(list(range(1, 12)), 8192)) == 1


@given(lengths=st.lists(st.integers(20, 500), min_size=2_000, max_size=2_000))
def test_padding_of_a_large_call_is_small(lengths: list[int]) -> None:
    cells = sum(len(batch) * max(lengths[index] for index in batch) for batch in token_batches(lengths, 8192))
    assert 1 - sum(lengths) / cells <= 0.05


@given(rows=st.lists(st.lists(st.integers(5, 9), max_size=7), max_size=6))
def test_pad_batch(rows: list[list[int]]) -> None:
    ids, mask = pad_batch([np.array(row, np.int32) for row in rows], fill=1)
    width = max(map(len, rows), default=0)
    assert ids.tolist() == [row + [1] * (width - len(row)) for row in rows]
    assert mask.tolist() == [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    assert ids.dtype == mask.dtype == torch.int64


def test_no_items() -> None:
    assert token_batches([], 10) == []


@pytest.mark.parametrize("budget", [1, 7])
def test_an_item_beyond_the_budget_stands_alone(budget: int) -> None:
    assert [batch.tolist() for batch in token_batches([9, 8], budget)] == [[0], [1]]


@given(sizes=LENGTHS, chunk=st.integers(1, 3_000))
def test_chunks_hold_every_item_once_largest_first(sizes: list[int], chunk: int) -> None:
    chunks = size_chunks(sizes, chunk)
    assert sorted(index for part in chunks for index in part) == list(range(len(sizes)))
    assert [sizes[index] for part in chunks for index in part] == sorted(sizes, reverse=True)
    for part in chunks:
        assert sum(sizes[index] for index in part[:-1]) <= chunk
