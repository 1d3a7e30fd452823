"""WordTable and TextIndex against a dict: every value keeps one slot, whatever comes in whichever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.keys import text_index
from understudy.state.keys.text_index import TextIndex
from understudy.state.keys.word_table import WordTable

LEAST, GREATEST = -(2**63), 2**63 - 1

CLOSE = st.integers(-50, 50)
"""They lie in one range, and outside the one of a batch before."""
WORDS = st.one_of(
    CLOSE,
    CLOSE.map(lambda word: LEAST + 50 + word),
    CLOSE.map(lambda word: GREATEST - 50 + word),
    st.integers(0, 30_000),
    st.integers(LEAST, GREATEST),
)


def array(words: list[int]) -> Any:
    return np.array(words, np.int64)


@given(st.lists(st.lists(WORDS, max_size=60), max_size=8), st.integers(0, 2**20))
@settings(deadline=None)
def test_a_word_keeps_its_slot(batches: list[list[int]], step: int) -> None:
    table = WordTable()
    known: dict[int, int] = {}
    for batch in batches:
        words = array(batch) * (2 * step + 1)
        slots = table.slots_of(words).tolist()
        for word, slot in zip(words.tolist(), slots, strict=True):
            assert known.setdefault(word, slot) == slot
        assert sorted(known.values()) == list(range(len(table))) == list(range(len(known)))
        assert table.words(np.array(list(known.values()), np.int64)).tolist() == list(known)


@pytest.mark.parametrize("step", [1, 3, 2**20, 2**43 + 1, -1])
def test_a_table_that_grows_finds_all_its_words(step: int) -> None:
    table = WordTable()
    words = np.arange(200_000, dtype=np.int64) * step
    for part in np.array_split(words, 17):
        first = table.slots_of(part)
        assert np.array_equal(table.slots_of(part), first)
    assert len(table) == len(words)
    assert np.array_equal(table.words(table.slots_of(words)), words)
    assert len(table) == len(words)


def test_words_are_given_slots_in_order() -> None:
    words = array([9, LEAST, 3, GREATEST])
    table = WordTable.of(words)
    assert table.slots_of(words[::-1]).tolist() == [3, 2, 1, 0]
    assert len(WordTable.of(words[:0])) == 0


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["a" * size for size in range(20)] + ["x" * 600 + middle + "y" * 600 for middle in "abc"]),
    st.text("\x00a", max_size=10),
)


@given(st.lists(st.lists(TEXTS, max_size=30), max_size=8), st.sampled_from([pa.string(), pa.large_string()]))
@settings(deadline=None)
def test_a_text_keeps_its_slot(batches: list[list[str]], kind: pa.DataType) -> None:
    check_texts(TextIndex(kind), [pa.array(["", *batch], kind).slice(1) for batch in batches])


@given(st.lists(st.lists(st.binary(max_size=20), max_size=30), max_size=8))
@settings(deadline=None)
def test_bytes_keep_their_slot(batches: list[list[bytes]]) -> None:
    check_texts(TextIndex(pa.binary()), [pa.array(batch, pa.binary()) for batch in batches])


def test_texts_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    words_of = text_index._words_of
    monkeypatch.setattr(text_index, "_words_of", lambda values, seed: words_of(values, seed) & (1 << 2 * seed) - 1)
    texts = [f"text {number}" for number in range(40)]
    check_texts(TextIndex(pa.string()), [pa.array(texts[start : start + 7] * 2) for start in range(0, 40, 5)])


def check_texts(index: TextIndex, batches: list[pa.Array]) -> None:
    known: dict[Any, int] = {}
    for batch in batches:
        slots = index.slots_of(batch).tolist()
        for value, slot in zip(batch.to_pylist(), slots, strict=True):
            assert known.setdefault(value, slot) == slot
        assert sorted(known.values()) == list(range(len(index))) == list(range(len(known)))
        values = index.values(np.array(list(known.values()), np.int64))
        assert values.to_pylist() == list(known)
        assert values.type == batch.type


def test_words_that_lie_close_together_are_found_whatever_comes_between() -> None:
    """The range is made, left for one word far away, and not made again until it is full enough."""
    table, known = WordTable(), {}
    for words in ([*range(0, 3000, 2)], [10**15], [*range(3000)], [-(10**15), 7], [*range(10**15, 10**15 + 2000)]):
        slots = table.slots_of(array(words)).tolist()
        for word, slot in zip(words, slots, strict=True):
            assert known.setdefault(word, slot) == slot
    assert sorted(known.values()) == list(range(len(table)))
    assert table.slots_of(array(list(known))).tolist() == list(known.values())
