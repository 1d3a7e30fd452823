"""Entries of a dict: what is frozen comes out in pieces of one key group each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.backends import heap_blocks
from understudy.state.backends.heap_blocks import FrozenEntries, KeyLayout, freeze_entries, pieces
from understudy.state.columns.packed_columns import unpacked
from understudy.state.keys.key_groups import key_group

MAX_PARALLELISM = 16

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(), st.binary()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple))


@settings(deadline=None)
@given(entries=st.dictionaries(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers())), VALUES))
def test_pieces_hold_all_entries_by_key_group(entries: dict[Any, Any]) -> None:
    found = {}
    for piece in pieces(freeze_entries(entries, KeyLayout()), MAX_PARALLELISM):
        keys = unpacked(piece.keys)
        assert {key_group(key, MAX_PARALLELISM) for key in keys} == {piece.group}
        found.update(zip(keys, unpacked(piece.values), strict=True))
    assert found == entries


def written(frozen: FrozenEntries) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for piece in pieces(frozen, MAX_PARALLELISM):
        found |= zip(unpacked(piece.keys), unpacked(piece.values), strict=True)
    return found


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_blocks, "CHUNK_ENTRIES", 10)


def test_more_entries_than_one_chunk(small_chunks: None) -> None:
    entries = {key: (key, str(key)) for key in range(95)}
    assert written(freeze_entries(entries, KeyLayout())) == entries


def test_a_later_snapshot_takes_the_keys_from_the_layout_and_the_values_as_they_are(small_chunks: None) -> None:
    entries = {key: (key, 0) for key in range(25)}
    layout = KeyLayout()
    assert written(freeze_entries(entries, layout)) == entries
    entries |= {key: (key, 1) for key in range(5, 48)}
    later = freeze_entries(entries, layout)
    assert (later.known, sum(map(len, later.keys))) == (2, 28)
    assert written(later) == entries


def test_what_is_written_is_what_was_held_when_it_was_frozen(small_chunks: None) -> None:
    entries = {key: key for key in range(25)}
    layout = KeyLayout()
    first, before = freeze_entries(entries, layout), dict(entries)
    entries |= {key: -key for key in range(20, 40)}
    second = freeze_entries(entries, layout)
    assert (written(second), written(first)) == (entries, before)


def test_keys_and_values_may_be_encoded() -> None:
    frozen = freeze_entries({"a": 2}, KeyLayout())
    (piece,) = pieces(frozen, MAX_PARALLELISM, lambda key: [key], lambda value: value * 1.5)
    assert (unpacked(piece.keys), unpacked(piece.values)) == ([["a"]], [3.0])
