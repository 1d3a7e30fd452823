"""Columnar windows in incremental checkpoints: whatever becomes of those before, each cut gives back all windows.

UNDERSTUDY_CASES=100000 plays more histories.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from understudy.messages import CheckpointId, KeyedStateHandle
from understudy.state.backends.backend import IncrementalBackend
from understudy.state.backends.run_ledger import RunLedger
from understudy.state.columnar import pane_table, section_runs, session_table, window_backend
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import cumulative_panes, sliding_panes, tumbling_panes
from understudy.state.columnar.section_runs import rows_left
from understudy.state.columnar.session_table import SessionTable

from .window_model import AlignedModel, Row, SessionModel, cumulative, sliding, tumbling
from .window_play import play
from .window_subtasks import SCHEMA, TARGET, Subtasks, batch_of, listed

HISTORIES = int(os.environ.get("UNDERSTUDY_CASES", "12"))
KEYS = [f"key {number}" for number in range(40)]
SHAPES = ["tumbling", "sliding", "cumulative", "session"]


@pytest.fixture(autouse=True)
def keys_are_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pane_table, session_table):
        monkeypatch.setattr(module, "_FEWEST_KEYS", 50)


def steps_of(draw: Random) -> list[Any]:
    """Many rows at first, of all keys; then a few at a time, watermarks and cuts, as event time goes on."""
    now = 0
    steps: list[Any] = [[Row(key, 1, draw.randrange(30)) for key in KEYS]]
    for _ in range(draw.randint(5, 25)):
        now += draw.choice((0, 1, 3))
        match draw.randrange(8):
            case 0 | 1:
                steps.append(now - draw.randrange(6))
            case 2:
                steps.append((now - draw.randrange(6), draw.randint(1, 9), [draw.randint(1, 3) for _ in range(2)]))
            case 3:
                steps.append((now - 50, 100, [draw.randint(1, 3)]))
            case _:
                times = [now + draw.randint(-8, 20) for _ in range(draw.randint(1, 4))]
                steps.append([Row(draw.choice(KEYS), draw.choice([None, 3, 4]), time) for time in times])
    return steps


def made(shape: str, draw: Random) -> tuple[Subtasks, Any]:
    lateness, fates, offset = draw.choice((0, 0, 5, 20)), Random(draw.random()), draw.randint(-7, 7)
    if shape == "session":
        gap = draw.randint(2, 12)
        return Subtasks(lambda rows: SessionTable(gap, rows, lateness), {}, fates=fates), SessionModel(gap, lateness)
    size, step = draw.randint(4, 30), draw.randint(1, 5)
    panes, assign = {
        "tumbling": lambda: (tumbling_panes(size, offset), tumbling(size, offset)),
        "sliding": lambda: (sliding_panes(size, step, offset), sliding(size, step, offset)),
        "cumulative": lambda: (cumulative_panes(step, step * 4, offset), cumulative(step, step * 4, offset)),
    }[shape]()
    subtasks = Subtasks(lambda rows: PaneTable(panes, rows, lateness), {}, two_phases=draw.random() < 0.3, fates=fates)
    return subtasks, AlignedModel(assign, lateness)


def played(shape: str, histories: int) -> int:
    """How many cuts were made of several runs."""
    found = 0
    for seed in range(histories):
        draw = Random(seed)
        subtasks, model = made(shape, draw)
        try:
            play(subtasks, model, steps_of(draw))
        except Exception as error:
            error.add_note(f"the history of seed {seed}")
            raise
        found += subtasks.lists_of_runs
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_are_those_of_the_definition_when_cuts_are_made_of_runs(shape: str) -> None:
    assert played(shape, HISTORIES) > HISTORIES / 4


def test_runs_stay_few_while_no_record_comes() -> None:
    subtasks = Subtasks(lambda rows: PaneTable(tumbling_panes(100, 0), rows), {}, fates=Random(1))
    subtasks.take([Row(key, 1, 5) for key in KEYS])
    (backend,) = subtasks.backends
    for number in range(1_000, 1_300):
        handle = backend.increment(CheckpointId(number))(replace(TARGET, inline_below_bytes=1))
        backend.checkpoint_complete(CheckpointId(number))
        assert handle is not None
        assert len(handle.shared) <= 30


@pytest.mark.parametrize("shape", ["tumbling", "session"])
def test_after_a_whole_snapshot_no_older_run_is_used(shape: str) -> None:
    """It may be a checkpoint, whose completion takes the older ones' files."""
    subtasks, _ = made(shape, Random(1))
    (backend,) = subtasks.backends
    backend.table_for(SCHEMA)
    for number in range(1, 5):
        rows, times = batch_of([Row(key, 1, 5) for key in (KEYS if number == 1 else KEYS[:1])])
        backend.table.update(rows, times)
        checkpoint = CheckpointId(number)
        write = backend.snapshot(checkpoint) if number == 3 else backend.increment(checkpoint)
        handle = write(replace(TARGET, inline_below_bytes=1))
        backend.checkpoint_complete(checkpoint)
        assert handle is not None
        assert len(handle.shared) == [1, 2, 0, 1][number - 1]


def test_a_task_takes_increments_of_them() -> None:
    assert isinstance(_pane_backend(), IncrementalBackend)


def _session_backend(lateness: int = 0) -> Any:
    return Subtasks(lambda rows: SessionTable(10, rows, lateness), {}, fates=Random(1)).backends[0]


def _pane_backend() -> Any:
    return Subtasks(lambda rows: PaneTable(tumbling_panes(10, 0), rows), {}, fates=Random(1)).backends[0]


def _fire_all(table: Any, watermark_ms: int) -> None:
    while table.fire(watermark_ms)[1]:
        pass


def _run(backend: Any, number: int, runs: int | None = None) -> KeyedStateHandle:
    """One more run of a checkpoint, which completes."""
    handle = backend.increment(CheckpointId(number))(replace(TARGET, inline_below_bytes=1))
    backend.checkpoint_complete(CheckpointId(number))
    assert len(handle.shared) == (runs or number)
    return cast("KeyedStateHandle", handle)


def _restored(backend: Any, handle: KeyedStateHandle, watermark: int) -> Any:
    backend.restore([handle], lambda stored: stored.data)
    backend.table.resume(watermark)
    return backend.table


def test_a_small_run_stands_beside_the_large_ones_before_it() -> None:
    """What is small is stored inline if it is the whole state; a run is not."""
    backend, target = _pane_backend(), replace(TARGET, inline_below_bytes=8_000)
    table = backend.table_for(SCHEMA)
    for number, count in ((1, 1_000), (2, 1)):
        table.update(*batch_of([Row(f"key {key}", 1, 5) for key in range(count)]))
        handle = backend.increment(CheckpointId(number))(target)
        backend.checkpoint_complete(CheckpointId(number))
        assert len(handle.shared) == number
    assert len(_restored(_pane_backend(), handle, 0)) == 1_000


def test_an_earlier_session_that_fires_with_a_record_of_another_key_has_fired_in_the_next_run() -> None:
    """Restored from a checkpoint taken while sessions were given out, it is due before the next watermark."""
    backend = _session_backend(lateness=100)
    table = backend.table_for(SCHEMA)
    table.update(*batch_of([*(Row(key, 1, 50) for key in KEYS), Row(KEYS[0], 1, 0)]))
    table.resume(20)
    _run(backend, 1)
    assert listed(table.update(*batch_of([Row(KEYS[1], 1, 50)])).results) == [(KEYS[0], 0, 10, 1, 1, 1)]
    assert _restored(_session_backend(lateness=100), _run(backend, 2), 20).fire(20) == ([], False)


@pytest.mark.parametrize("others", [KEYS, KEYS[1:]], ids=["earlier", "last"])
def test_a_session_that_has_closed_is_not_in_the_next_run(others: list[str]) -> None:
    backend = _session_backend(lateness=5)
    table = backend.table_for(SCHEMA)
    table.update(*batch_of([*(Row(key, 1, 50) for key in others), Row(KEYS[0], 1, 0)]))
    results, has_more = table.fire(12)
    assert listed(results) == [(KEYS[0], 0, 10, 1, 1, 1)]
    assert not has_more or table.fire(12) == ([], False)
    _run(backend, 1)
    assert table.fire(20) == ([], False)
    assert len(table) == len(others)
    assert len(_restored(_session_backend(lateness=5), _run(backend, 2), 20)) == len(others)


@pytest.mark.parametrize("make", [_pane_backend, _session_backend])
def test_a_checkpoint_after_keys_were_given_up_is_whole(make: Callable[[], Any]) -> None:
    backend = make()
    table = backend.table_for(SCHEMA)
    for wave in range(3):
        table.update(*batch_of([Row(f"key {number} of wave {wave}", 1, 200 * wave) for number in range(40)]))
        if wave < 2:  # these are gone
            _fire_all(table, 200 * wave + 100)
    _run(backend, 1)
    table.update(*batch_of([Row("one more", 1, 400)]))
    assert table.key_count == 121
    _fire_all(table, 301)
    assert table.key_count == 41
    assert len(_restored(make(), _run(backend, 2, runs=1), 301)) == 41


def _unnoticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunLedger, "changed", lambda *_: None)


def _gone_comes_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(section_runs, "without_gone", lambda rows, header: rows)


def _oldest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(window_backend, "rows_left", lambda runs, *others: rows_left(runs[::-1], *others))


def _new_slots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunLedger, "start_over", lambda _: None)


def _fired_unnoticed(patch: pytest.MonkeyPatch) -> None:
    forget = SessionTable._forget

    def unnoticed(table: SessionTable, slots: Any) -> None:
        changes, table.changes = table.changes, None
        forget(table, slots)
        table.changes = changes

    patch.setattr(SessionTable, "_forget", unnoticed)
    patch.setattr(SessionTable, "_changed", lambda table, slots: None)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("shape", "mutate"),
    [
        *((shape, _unnoticed) for shape in SHAPES),
        *((shape, _oldest) for shape in SHAPES),
        ("tumbling", _gone_comes_back),
        ("session", _gone_comes_back),
        ("session", _fired_unnoticed),
        ("sliding", _new_slots),
    ],
)
def test_each_mutant_is_caught(
    shape: str, mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, ValueError, LookupError, np.exceptions.AxisError)):
        played(shape, 200)
