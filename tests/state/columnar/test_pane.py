"""Pane against a dict: whatever is asked of it in between, and however many keys there are elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.state.columnar.pane import Pane
from understudy.state.columnar.part_columns import ROWS, PartColumns, RowsOfSlots
from understudy.state.kinds.aggregates import Part

from ...examples import examples

SUM, LEAST, COUNT = Part("sum", "value"), Part("min", "value"), Part("count", "value")
PARTS = {ROWS: pa.int64(), SUM: pa.int64(), LEAST: pa.int64(), COUNT: pa.int64()}

ROW = st.tuples(st.integers(0, 5), st.none() | st.integers(-9, 9))
ROWS_OF_KEYS = st.lists(ROW, min_size=1, max_size=12)
MORE_KEYS = st.just(0) | st.integers(0, 40)
"""Elsewhere. With none, rows are more than keys soon: a pane becomes wide."""
ASKED = st.sampled_from(["slots", "len", "values", "find", "copy", "seal", "renumber", "take out", "nothing"])


def add(pane: Pane, rows: list[tuple[int, int | None]], known: int) -> None:
    slots, values = zip(*rows, strict=True)
    places = pane.places_of(np.array(slots, np.int64), known)
    pane.parts.take_in(RowsOfSlots(pa.record_batch({"value": pa.array(values, pa.int64())}), places))


def held(pane: Pane) -> dict[int, tuple[int, int, int, int]]:
    """By slot: rows, values, sum and least."""
    values = pane.values()
    columns = [values[part].tolist() for part in (ROWS, COUNT, SUM, LEAST)]
    return dict(zip(pane.slots.tolist(), zip(*columns, strict=True), strict=True))


def wanted(rows: list[tuple[int, int | None]]) -> dict[int, tuple[int, int, int, int]]:
    found = {}
    for slot in {slot for slot, _ in rows}:
        every = [value for each, value in rows if each == slot]
        there = [value for value in every if value is not None]
        found[slot] = (len(every), len(there), sum(there), min(there, default=2**63 - 1))
    return found


@examples(200)
@given(st.lists(st.tuples(ROWS_OF_KEYS, MORE_KEYS, ASKED), min_size=1, max_size=8), st.integers(0, 99))
def test_it_holds_what_came(steps: list[tuple[list[tuple[int, int | None]], int, str]], expected: int) -> None:
    spare: list[PartColumns] = []
    pane, known, so_far = Pane(PARTS, expected, spare), 6, list[Any]()
    for rows, more, asked in steps:
        known += more
        add(pane, rows, known)
        so_far += rows
        model = wanted(so_far)
        match asked:
            case "slots":
                assert sorted(pane.slots.tolist()) == sorted(model)
            case "len":
                assert len(pane) == len(model)
            case "values":
                assert held(pane) == model
            case "find":
                found = pane.find(np.arange(known), known)
                assert set(np.flatnonzero(found >= 0).tolist()) == set(model)
                assert pane.parts.at(found[sorted(model)])[SUM].tolist() == [model[slot][2] for slot in sorted(model)]
            case "copy":
                pane = pane.copy()
            case "seal":
                pane.seal()
            case "take out":
                slots, values = pane.take_out()
                assert dict(zip(slots.tolist(), values[SUM].tolist(), strict=True)) == {
                    slot: each[2] for slot, each in model.items()
                }
                so_far = []
                assert len(pane) == 0
            case "renumber":
                pane.renumber(np.arange(known)[::-1])
                so_far = [(known - 1 - slot, value) for slot, value in so_far]
    assert len(pane) == len(wanted(so_far))
    assert held(pane) == wanted(so_far)


@given(ROWS_OF_KEYS, ROWS_OF_KEYS, st.integers(6, 20))
def test_one_is_merged_into_another(first: list[Any], second: list[Any], known: int) -> None:
    pane, other = Pane(PARTS), Pane(PARTS)
    add(pane, first, known)
    add(other, second, known)
    pane.merge(other, known)
    assert held(pane) == wanted(first + second)
    assert held(other) == wanted(second)


@pytest.mark.parametrize(("rows", "has_place"), [(99, False), (100, True)])
def test_as_many_rows_as_keys_are_added_without_a_search(rows: int, has_place: bool) -> None:
    pane, slots = Pane(PARTS), np.full(rows, 7)
    assert (pane.places_of(slots, 100) is slots) is has_place


def test_wide_arrays_are_used_again() -> None:
    spare: list[PartColumns] = []
    first, second = (Pane(PARTS, 10, spare) for _ in range(2))
    add(first, [(3, 1)], 10)
    wide = first.parts
    assert first.slots.tolist() == [3]
    assert spare == [wide]
    add(second, [(4, 2)], 10)
    assert second.parts is wide
    assert not spare
    assert held(second) == wanted([(4, 2)])


def test_places_of_a_pane_are_those_of_what_came_while_it_was_wide() -> None:
    pane = Pane(PARTS)
    add(pane, [(5, 1), (3, 1)], 6)
    add(pane, [(slot, 1) for slot in (0, 0, 1, 2)], 6)
    assert pane.find(np.arange(6), 6).tolist() == [0, 1, 2, 3, -1, 4]


def test_a_wide_pane_grows_with_the_keys() -> None:
    pane = Pane(PARTS, 100_000)
    add(pane, [(0, 1)], 1)
    add(pane, [(50_000, 2)], 50_001)
    assert held(pane) == wanted([(0, 1), (50_000, 2)])


def test_a_pane_that_does_not_count_rows_is_never_wide() -> None:
    pane = Pane({SUM: pa.int64()}, 100)
    pane.parts.take_in(RowsOfSlots(pa.record_batch({"value": [3]}), pane.places_of(np.array([4]), 5)))
    assert pane.slots.tolist() == [4]
    assert pane.values()[SUM].tolist() == [3]


def test_a_copy_gives_its_wide_arrays_to_the_same_panes() -> None:
    spare: list[PartColumns] = []
    copy = Pane(PARTS, 10, spare).copy(10)
    add(copy, [(3, 1)], 10)
    assert copy.slots.tolist() == [3]
    assert len(spare) == 1


def test_a_pane_becomes_wide_again_only_after_as_many_rows_more_as_there_are_keys() -> None:
    pane = Pane(PARTS, 10)
    add(pane, [(3, 1)], 10)
    assert pane.slots.tolist() == [3]
    few = np.array([3])
    assert pane.places_of(few, 10) is not few
    for _ in range(8):
        pane.places_of(few, 10)
    assert pane.places_of(few, 10) is few, "ten rows since"


def test_when_keys_are_more_than_rows_memory_is_that_of_the_keys_that_came() -> None:
    pane = Pane(PARTS)
    add(pane, [(slot, 1) for slot in range(100)], 100)
    add(pane, [(5, 1)], 1_000_000)
    counts = pane.parts.row_counts()
    assert counts is not None
    assert len(counts) < 1000
    assert held(pane)[5] == (2, 2, 2, 1)
