"""What windows come to in the end is what a batch computes over the same records: in whatever order they come, as long
as none is late, and wherever the operator is restored or rescaled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Change, TimeWindow, Trigger, any_of, count, cumulative, event_time, session, sliding, tumbling
from understudy.actors.windows.window import merged
from understudy.actors.windows.window_contents import AllRecords, Contents, Reduced

from ...examples import examples
from .window_stage import WindowStage, rescaled, windowed

LATENESS = 15

ASSIGNERS = {
    "tumbling": tumbling(10, offset_ms=3),
    "sliding": sliding(12, 5),
    "cumulative": cumulative(4, 12),
    "session": session(7),
    "session by record": session(lambda record: 3 + record[1] % 5),
}
TRIGGERS: list[Trigger] = [event_time(), any_of(event_time(), count(2))]
CONTENTS = [AllRecords, lambda: Reduced(lambda one, other: (one[0], one[1] + other[1]))]


class Put(NamedTuple):
    """A record, so long after the watermark less the lateness: none is late."""

    key: str
    value: int
    after_ms: int


class Advance(NamedTuple):
    by_ms: int


class Restore(NamedTuple):
    parallelism: int


actions = st.lists(
    st.one_of(
        st.builds(Put, st.sampled_from("abc"), st.integers(1, 9), st.integers(2, 60)),
        st.builds(Advance, st.integers(1, 30)),
        st.builds(Restore, st.integers(1, 3)),
    ),
    max_size=25,
)


def total(key: Any, window: Any, records: Sequence[Any], out: Any) -> None:
    out.collect((key, tuple(window), sum(value for _, value in records)))


def batch_result(assigner: Any, records: Sequence[tuple[str, int, int]]) -> Counter[Any]:
    """The same windows from all records at once."""
    assigned: dict[str, list[tuple[TimeWindow, int]]] = defaultdict(list)
    for key, value, time in records:
        assigned[key] += [(window, value) for window in assigner.assign((key, value), time)]
    return Counter({(key, tuple(w), s): 1 for key, pairs in assigned.items() for w, s in _sums(assigner, pairs)})


def _sums(assigner: Any, pairs: list[tuple[TimeWindow, int]]) -> Iterator[tuple[TimeWindow, int]]:
    wholes = (
        {part: whole for whole, parts in merged({w for w, _ in pairs}) for part in parts} if assigner.merges else {}
    )
    sums: Counter[TimeWindow] = Counter()
    for window, value in pairs:
        sums[wholes.get(window, window)] += value
    yield from sums.items()


def applied(changes: Sequence[Change]) -> Counter[Any]:
    """What a reader of the changes has in the end."""
    held: Counter[Any] = Counter()
    for kind, record in changes:
        held[record] += 1 if kind in ("+I", "+U") else -1
        assert held[record] >= 0, f"{record} is taken back and was never emitted"
    return +held


@pytest.mark.parametrize("name", ASSIGNERS)
@given(script=actions, trigger=st.sampled_from(TRIGGERS), contents=st.sampled_from(CONTENTS))
@examples(60)
def test_windows_come_to_what_a_batch_computes(name: str, script: list[Any], trigger: Trigger, contents: Any) -> None:
    made: Contents = contents()
    operator = windowed(ASSIGNERS[name], made, total, trigger=trigger, allowed_lateness_ms=LATENESS, mode="retracting")
    stages, watermark = [WindowStage(operator)], 0
    records: list[tuple[str, int, int]] = []
    changes: list[Change] = []
    for action in script:
        match action:
            case Put(key, value, after_ms):
                time = watermark - LATENESS + after_ms
                records.append((key, value, time))
                (owner,) = [stage for stage in stages if stage.owns((key, value))]
                changes += owner.feed((key, value), at=[time])
            case Advance(by_ms):
                watermark += by_ms
                changes += [change for stage in stages for change in stage.advance(watermark)]
            case Restore(parallelism):
                stages = rescaled(stages, parallelism)
    changes += [change for stage in stages for change in stage.end()]
    assert applied(changes) == batch_result(ASSIGNERS[name], records)
    assert [stage.late() for stage in stages] == [[]] * len(stages)
    assert {stage.holds() for stage in stages} == {(0, 0)}


late_actions = st.lists(
    st.one_of(
        st.builds(Put, st.sampled_from("ab"), st.integers(1, 9), st.integers(-30, 60)),
        st.builds(Advance, st.integers(1, 30)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("name", ASSIGNERS)
@given(script=late_actions, cuts=st.sets(st.integers(0, 25)))
@examples(40)
def test_a_restore_anywhere_changes_nothing_of_what_comes_out(name: str, script: list[Any], cuts: set[int]) -> None:
    """Results, late records and their times, in the same order for each key."""

    def run(cuts: set[int]) -> tuple[list[Any], int]:
        stage = WindowStage(windowed(ASSIGNERS[name], None, total, allowed_lateness_ms=LATENESS))
        watermark, found = 0, []
        for position, action in enumerate(script):
            if position in cuts:
                stage = stage.restored()
            match action:
                case Put(key, value, after_ms):
                    stage.put((key, value), at=[watermark - LATENESS + after_ms])
                case Advance(by_ms):
                    watermark += by_ms
                    stage.put_watermark(watermark)
            found.append((sorted(stage.taken()), stage.late()))
        stage.harness.end()
        return [*found, (sorted(stage.taken()), [])], sum(stage.holds())

    assert stage_is_empty(run(cuts)) == stage_is_empty(run(set()))


def stage_is_empty(ran: tuple[list[Any], int]) -> list[Any]:
    found, held = ran
    assert held == 0, "state or timers are left behind"
    return found
