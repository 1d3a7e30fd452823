"""State with a TTL in dicts passes its contract; what has expired is removed bit by bit; how it is stored."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from understudy import FoldingState, InvalidState, ListState, MapState, ReducingState, Ttl, ValueState
from understudy.messages import CheckpointId, MalformedMessage
from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.backends.expiring_state import ACCESSES_PER_CLEANING
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.timed_values import ENTRIES, ITEMS, WHOLE
from understudy.state.errors import StateIncompatible, WrongStateType

from ...contracts.expiring_state import (
    MAX_PARALLELISM,
    TTL_MS,
    Declared,
    ExpiringStateContract,
    Hands,
    Step,
    apply,
    looked_at,
)


class TestHeapBackend(ExpiringStateContract):
    def make_expiring(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        return HeapBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM)


def backend_with(hands: Hands) -> HeapBackend:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    backend.clock = hands
    return backend


def held_in(state: Any) -> int:
    """Keys in memory, whether they have expired or not."""
    return sum(map(len, state.namespaces.values()))


# --- cleaning up


@pytest.mark.parametrize("clock", ["processing", "event"])
@pytest.mark.parametrize("snapshots", [False, True])
def test_memory_is_flat_while_keys_come_and_never_come_back(clock: Any, snapshots: bool) -> None:
    """A key each ms with a TTL of a second: never more than half as many again as live."""
    hands = Hands()
    backend, most = backend_with(hands), 0
    state = backend.state(ValueState(int, name="seen", ttl=Ttl(seconds=1, clock=clock)))
    for key in range(50_000):
        hands.now_ms += 1
        backend.current_key = key
        state.update(key)
        if key % 1000 == 0:
            most = max(most, held_in(state))
            if snapshots and key % 5_000 == 0:
                backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert 1000 <= most < 1500
    assert backend.entry_count() == 1000


@pytest.mark.parametrize(
    ("declared", "write", "size"),
    [
        (
            MapState(int, int, name="held", ttl=Ttl(1000)),
            lambda state, at: state.put(at, at),
            lambda held: len(held[1]),
        ),
        (ListState(int, name="held", ttl=Ttl(1000)), lambda state, at: state.add(at), lambda held: len(held[1])),
    ],
)
def test_memory_is_flat_where_one_key_gets_ever_new_parts(
    declared: Any, write: Callable[[Any, int], None], size: Callable[[Any], int]
) -> None:
    hands, most = Hands(), 0
    backend = backend_with(hands)
    state = backend.state(declared)
    backend.current_key = "JFK"
    for at in range(50_000):
        hands.now_ms += 1
        write(state, at)
        if at % 100 == 0:
            most = max(most, size(state.namespaces[()]["JFK"]))
    assert 1000 <= most < 1600


@pytest.mark.parametrize("clock", ["processing", "event"])
def test_what_comes_after_all_has_expired_is_removed_in_its_turn(clock: Any) -> None:
    """A cleaning that leaves nothing says nothing of what comes."""
    hands = Hands()
    backend = backend_with(hands)
    state = backend.state(ValueState(int, name="held", ttl=Ttl(1000, clock=clock)))
    for time in range(3):
        for number in range(500):
            backend.current_key = time, number
            state.update(1)
        hands.now_ms += 1000
        backend.current_key = "JFK"
        for _ in range(500 + 10 * ACCESSES_PER_CLEANING):
            state.value()
        assert held_in(state) == 0


def test_memory_is_flat_where_namespaces_come_and_go() -> None:
    hands, most = Hands(), 0
    backend = backend_with(hands)
    state: Any = backend.state(ReducingState(int, max, name="held", ttl=Ttl(1000)))
    backend.current_key = "JFK"
    for at in range(50_000):
        hands.now_ms += 1
        state.set_namespace((at, at + 1))
        state.add(at)
        most = max(most, len(state.namespaces))
    assert 1000 <= most < 1500


def test_a_cleaning_looks_at_a_bounded_number_of_keys() -> None:
    hands = Hands()
    backend = backend_with(hands)
    state = backend.state(ValueState(int, name="held", ttl=Ttl(1000)))
    for backend.current_key in range(10_000):
        state.update(1)
    hands.now_ms += 1000
    before = held_in(state)
    for at in range(5 * ACCESSES_PER_CLEANING):
        backend.current_key = "JFK"
        state.update(at)
    assert before - held_in(state) in range(3 * ACCESSES_PER_CLEANING, 21 * ACCESSES_PER_CLEANING)


def test_nothing_is_looked_at_while_nothing_can_have_expired() -> None:
    hands = Hands()
    backend = backend_with(hands)
    state: Any = backend.state(ValueState(int, name="held", ttl=Ttl(1000)))
    for backend.current_key in range(100):
        state.update(1)
    for _ in range(10 * ACCESSES_PER_CLEANING):
        state.value()
    state._cleaning = iter(())
    hands.now_ms += 999
    for _ in range(10 * ACCESSES_PER_CLEANING):
        state.value()
    assert held_in(state) == 100


# --- storing


GOLDEN = b64decode(
    "hKZmb3JtYXQCr21heF9wYXJhbGxlbGlzbRCja2V5o0FueaZzdGF0ZXOTk6V2YWx1ZapWYWx1ZVN0YXRlgqN0dGyjaW50pWNsb2NrpWV2ZW50k6"
    "VpdGVtc6lMaXN0U3RhdGWCo3R0bIGkbGlzdKRsaXN0pWNsb2NrpWV2ZW50k6V0YWJsZahNYXBTdGF0ZYKjdHRsgaNtYXCSo2ludKNpbnSlY2xv"
    "Y2ulZXZlbnSTkgDEKZPUAZCSpXBsYWlukaNKRkuTpnR1cGxlc5KjfGkxxAEDkqM8aTLEAuoDkgHENJPUAZCSpXBsYWlukaNKRkuTpnR1cGxlc5"
    "KlcGxhaW6RkpEBkQOSpXBsYWlukZLNA+rNA+iSAsQ0k9QBkJKlcGxhaW6Ro0pGS5OmdHVwbGVzkqVwbGFpbpGCAQEDA5KlcGxhaW6Rks0D6s0D"
    "6A=="
)
"""What `golden` stored when the format was made."""


def golden() -> tuple[Hands, Declared, HeapBackend]:
    hands, declared = Hands(), Declared(Ttl(TTL_MS, clock="event"))
    backend = backend_with(hands)
    script = [Step(what, "JFK", argument) for what in ("value", "items", "table", "advance") for argument in (1, 3)]
    apply(backend, declared, hands, script)
    return hands, declared, backend


def test_the_format_of_a_snapshot_is_what_it_was() -> None:
    hands, declared, backend = golden()
    handle = backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert handle is not None
    assert handle.handle.data == GOLDEN
    restored = backend_with(hands)
    restored.restore([handle], lambda it: GOLDEN)
    assert looked_at(restored, declared) == {"JFK": (3, [[1], [3]], {1: 1, 3: 3}, None, None)}
    hands.now_ms = 1000 + TTL_MS  # when the record with argument 3 was written, and that with 1 two ms later
    assert looked_at(restored, declared) == {"JFK": (3, [[1]], {1: 1}, None, None)}


def test_times_that_do_not_fit_the_items_are_corrupt() -> None:
    for shape, value, times in ((WHOLE, 1, "text"), (ITEMS, [1, 2], [1]), (ENTRIES, {1: 2}, [1, 2]), (ITEMS, [], [])):
        with pytest.raises(MalformedMessage, match="wanted the time"):
            shape.with_stored(value, times)


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        (
            ValueState(str, name="value", ttl=Ttl(1)),
            r"'value' .*ValueState of str.* ValueState of int with a TTL by event",
        ),
        (ValueState(str, name="value"), r"'value' .*ValueState of str.* ValueState of int with a TTL by event"),
        (ListState(int, name="value", ttl=Ttl(1)), r"'value' .*ListState of .* ValueState of int with a TTL by event"),
    ],
)
def test_another_type_is_refused_with_a_ttl_and_without(declared: Any, wanted: str) -> None:
    hands, _, backend = golden()
    handle = backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert handle is not None
    restored = backend_with(hands)
    restored.restore([handle], lambda it: it.data or b"")
    with pytest.raises(StateIncompatible, match=wanted):
        restored.state(declared)


def test_a_value_that_does_not_fit_is_refused_as_without_a_ttl() -> None:
    backend = backend_with(Hands())
    backend.current_key = "JFK"
    ttl = Ttl(1)
    changes: list[Callable[[], Any]] = [
        lambda: backend.state(ValueState(int, name="a", ttl=ttl)).update("text"),  # type: ignore[arg-type]
        lambda: backend.state(ListState(int, name="b", ttl=ttl)).add("text"),  # type: ignore[arg-type]
        lambda: backend.state(MapState(int, int, name="c", ttl=ttl)).put(1, "text"),  # type: ignore[arg-type]
        lambda: backend.state(MapState(int, int, name="c", ttl=ttl)).put("text", 1),  # type: ignore[arg-type]
    ]
    for change in changes:
        with pytest.raises(WrongStateType, match="wanted int, found str 'text' for key 'JFK'"):
            change()
    boxes = backend.state(ValueState(list[int], name="d", ttl=ttl))
    boxes.update(["text"])  # type: ignore[list-item]
    with pytest.raises(WrongStateType, match=r"'d' .*wanted int, found str 'text' at \[0\] for key 'JFK'"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


# --- declaring


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Ttl(0), "Ttl: wanted a duration above 0 ms, found 0 ms"),
        (lambda: Ttl(timedelta(0)), "Ttl: wanted a duration above 0 ms, found 0 ms"),
        (lambda: Ttl(), "Ttl: wanted a duration such as 60_000, timedelta(minutes=1) or minutes=1, found nothing"),
        (
            lambda: Ttl(1, hours=1),
            "Ttl: wanted a duration such as 60_000, timedelta(minutes=1) or minutes=1, found both a duration",
        ),
        (lambda: Ttl(years=1), "Ttl: no unit years; wanted some of days, hours, minutes, seconds, ms"),  # type: ignore[call-arg]
        (lambda: Ttl(hours=-1), "Ttl: wanted a duration above 0 ms, found -3600000 ms"),
        (lambda: Ttl(hours=0.5), "Ttl: hours: wanted a whole number or a timedelta, found 0.5"),
        (lambda: Ttl(True), "Ttl: wanted a whole number of milliseconds or a timedelta, found True"),
        (lambda: Ttl(1, clock="wall"), "Ttl: clock: wanted 'processing' or 'event', found 'wall'"),
        (lambda: Ttl(1, on="create"), "Ttl: on: wanted 'write' or 'read', found 'create'"),
        (lambda: ValueState(int, ttl=60_000), "ValueState: ttl: wanted Ttl(hours=1), or Ttl(ms) for a number of ms"),
        (lambda: ListState(int, ttl=0), "ListState: ttl: wanted Ttl(hours=1), or Ttl(ms) for a number of ms, found 0"),
        (lambda: FoldingState(int, 0, max, ttl="1h"), "FoldingState: ttl: wanted Ttl(hours=1)"),
    ],
)
def test_what_cannot_be_a_ttl_is_refused_where_it_is_declared(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidState) as raised:
        make()
    assert text in str(raised.value)


def test_a_small_bare_number_may_be_meant_as_seconds(caplog: pytest.LogCaptureFixture) -> None:
    assert Ttl(5).duration_ms == 5
    assert caplog.messages == ["Ttl(5) is 5 ms. If seconds are meant, write Ttl(seconds=5), else Ttl(ms=5)"]
    caplog.clear()
    assert (Ttl(ms=5).duration_ms, Ttl(500).duration_ms) == (5, 500)
    assert caplog.messages == []


def test_the_parts_of_a_duration_are_added_up() -> None:
    assert Ttl(ms=5, days=1, hours=2, minutes=3, seconds=4).duration_ms == 93_784_005
    assert Ttl(1500) == Ttl(timedelta(seconds=1.5)) == Ttl(seconds=1, ms=500)
    assert (Ttl(hours=1).clock, Ttl(hours=1).on) == ("processing", "write")
    assert Ttl(minutes=60) == Ttl(hours=1) != Ttl(hours=1, on="read")
    assert repr(Ttl(hours=1)) == "Ttl(duration_ms=3600000, clock='processing', on='write')"
