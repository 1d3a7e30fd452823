"""Temporal joins, over columns and per record, against loops over what had come when the watermark passed a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from understudy.actors.joins import temporal_join
from understudy.actors.joins.late_records import LATE
from understudy.actors.joins.record_temporal_join import RecordTemporalJoin
from understudy.actors.joins.temporal_join import TemporalJoin
from understudy.actors.operators.operator import Operator
from understudy.state.columnar.row_store import RowStore

from ...examples import examples
from .join_stage import LEFT, RIGHT, Advance, Arrive, Cut, Step, batch_of, flat, play, scripts


def operators(how: Any, is_columnar: bool) -> Callable[[], Operator]:
    if is_columnar:
        return lambda: TemporalJoin(["key"], ["key"], how, "_right")
    return lambda: RecordTemporalJoin(how == "left")


def wanted_of(script: list[Step], how: str) -> tuple[list[Any], int]:
    """The results with their times, and how many records were late."""
    marks, mark, waiting, versions, results, late = [-(2**63)] * 2, -(2**63), [], [], [], 0
    for step in (*script, Advance(0, 2**62), Advance(1, 2**62)):
        if isinstance(step, Arrive) and step.side == 0:
            late += sum(row[2] <= mark for row in step.rows)
            waiting += [row for row in step.rows if row[2] > mark]
        elif isinstance(step, Arrive):
            versions += step.rows
        elif isinstance(step, Advance):
            marks[step.side] = max(marks[step.side], step.to_ms)
            mark = min(marks)
            for key, a, at in [row for row in waiting if row[2] <= mark]:
                waiting.remove((key, a, at))
                valid = [
                    (begin, place, b)
                    for place, (other, b, begin) in enumerate(versions)
                    if other == key and begin <= at
                ]
                if valid or how == "left":
                    results.append(((key, a, str(max(valid)[2]) if valid else None), at))
    return results, late


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("how", ["inner", "left"])
@given(script=scripts())
@examples(60)
def test_each_record_finds_the_version_of_its_time(how: str, is_columnar: bool, script: list[Step]) -> None:
    played = play(operators(how, is_columnar), script, is_columnar=is_columnar, late=LATE[:1])
    wanted, late = wanted_of(script, how)
    found = [(record if is_columnar else flat(record), time) for record, time, _ in played.results]
    assert Counter(found) == Counter(wanted)
    assert all(time is not None and time > watermark for _, time, watermark in played.results), "none is late behind it"
    assert len(played.late) == late


@pytest.mark.parametrize("is_columnar", [True, False])
def test_a_record_that_waits_comes_in_time_though_it_was_restored(is_columnar: bool) -> None:
    script = [Arrive(1, ((1, 7, 10),)), Arrive(0, ((1, 0, 12),)), Cut(2), Advance(0, 15), Advance(1, 15)]
    played = play(operators("inner", is_columnar), script, is_columnar=is_columnar, ends=False)
    assert [time for _, time, _ in played.results] == [12]


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("looks", [Arrive(1, ((1, 9, 30),)), Arrive(0, ((1, 8, 5),))], ids=["a version", "a record"])
def test_the_version_that_is_valid_stays_when_older_ones_are_forgotten(
    looks: Arrive, is_columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go with the next version, or record, of their key."""
    monkeypatch.setattr(temporal_join, "_FEWEST_ROWS", 1)
    versions = tuple((1, at, at) for at in (1, 2, 3))
    script: list[Step] = [Arrive(1, versions)]
    script += [looks] if looks.side == 0 else []
    script += [Advance(0, 10), Advance(1, 10)]
    script += [looks] if looks.side == 1 else []
    script += [Cut(1), Arrive(0, ((1, 0, 20),)), Advance(0, 25), Advance(1, 25)]
    played = play(operators("left", is_columnar), script, is_columnar=is_columnar, ends=False)
    found = [(record if is_columnar else flat(record), time) for record, time, _ in played.results]
    assert found[-1] == ((1, 0, "3"), 20)


def test_old_versions_are_forgotten_and_the_newest_of_each_key_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporal_join, "_FEWEST_ROWS", 5)
    script: list[Step] = []
    for at in range(0, 300, 3):
        script += [Arrive(1, tuple((key, at, at) for key in (1, 2))), Advance(0, at + 2), Advance(1, at + 2)]
    script += [Cut(1), Arrive(0, ((1, 7, 400), (2, 8, 400))), Arrive(1, ((2, 9, 400),))]
    played = play(operators("inner", True), script, is_columnar=True)
    assert sorted(played.records()) == [(1, 7, "297"), (2, 8, "9")]


def test_the_state_does_not_grow_with_the_number_of_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.runtime.simulation.harness.harness import OperatorHarness

    monkeypatch.setattr(temporal_join, "_FEWEST_ROWS", 5)
    with OperatorHarness(operators("inner", True)(), key_by="key", key_by_2="key", schemas=(LEFT, RIGHT)) as harness:
        for at in range(1000):
            harness.process(batch_of(1, [(1, 1, at)], True, (LEFT, RIGHT)), 1, timestamps=[at])
            harness.watermark(at, 0)
            harness.watermark(at, 1)
            assert harness.operator.keyed_state.entry_count() <= 12


def test_versions_of_a_hot_key_are_looked_at_once_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record looked at all versions of its key."""
    looks: list[int] = []
    pairs = RowStore.pairs

    def counted(store: RowStore, slots: Any) -> Iterator[Any]:
        for positions, rows in pairs(store, slots):
            looks.append(len(rows))
            yield positions, rows

    monkeypatch.setattr(RowStore, "pairs", counted)
    times = range(500)
    script = [Arrive(1, tuple((1, at, at) for at in times)), Arrive(0, tuple((1, at, at + 1) for at in times))]
    played = play(operators("inner", True), script, is_columnar=True)
    assert sorted(int(version) for _, _, version in played.records()) == [min(at + 1, 499) for at in times]
    assert 0 < sum(looks) <= 1_000
