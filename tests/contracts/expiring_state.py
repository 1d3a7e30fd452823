"""ExpiringStateContract: what state with a TTL must do in every keyed state backend that has it.

The clock is in the test's hand. Cases of Flink's TtlStateTestBase are named where there is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy import FoldingState, ListState, MapState, ReducingState, Ttl, ValueState
from understudy.messages import CheckpointId, KeyedStateHandle
from understudy.state.backends.backend import NO_TIME, KeyedSnapshot, KeyedStateBackend, key_count
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.errors import ReadOnlyState
from understudy.state.keys.key_groups import key_group

MAX_PARALLELISM = 16
KEYS = ["JFK", "LGA", 3]
TTL_MS = 10

contract = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors], deadline=None
)
ways = pytest.mark.parametrize(("clock", "on"), list(product(["processing", "event"], ["write", "read"])))


@dataclass
class Hands:
    """A StateClock that stands still. `late_ms`: how much older than the watermark the record at hand is."""

    now_ms: int = 1000
    late_ms: int = 0
    event_is_known: bool = True

    def processing_ms(self) -> int:
        return self.now_ms

    def event_ms(self) -> int:
        return self.now_ms if self.event_is_known else NO_TIME

    def written_ms(self, what: str) -> int:
        return self.now_ms - self.late_ms if self.event_is_known else NO_TIME


def appended(held: list[int], added: int) -> list[int]:
    held.append(added)
    return held


class Declared:
    """One state of each kind with this TTL, or without."""

    def __init__(self, ttl: Ttl | None) -> None:
        self.value = ValueState(int, default=-1, name="value", ttl=ttl)
        self.items = ListState(list, name="items", ttl=ttl)
        self.table = MapState(int, int, name="table", ttl=ttl)
        self.total = ReducingState(int, lambda held, added: held + added, name="total", ttl=ttl)
        self.folded = FoldingState(list, [], appended, name="folded", ttl=ttl, merge=lambda held, other: held + other)


class Step(NamedTuple):
    what: str
    key: Any
    argument: int


def scripts() -> st.SearchStrategy[list[Step]]:
    what = ["value", "items", "replace", "table", "remove", "total", "folded", "clear", "read"] + 3 * ["advance"]
    return st.lists(
        st.builds(Step, st.sampled_from(what), st.sampled_from(KEYS), st.integers(0, 6)), min_size=4, max_size=30
    )


def apply(backend: KeyedStateBackend, declared: Declared, clock: Hands, script: Iterable[Step]) -> None:
    for what, backend.current_key, argument in script:
        clock.late_ms = argument - 3
        match what:
            case "advance":
                clock.now_ms += argument
            case "value":
                backend.state(declared.value).update(argument)
            case "items":
                backend.state(declared.items).add([argument])
            case "replace":
                backend.state(declared.items).update([[argument]] * argument)
            case "table":
                backend.state(declared.table).put(argument, argument)
            case "remove":
                backend.state(declared.table).remove(argument)
            case "total":
                backend.state(declared.total).add(argument)
            case "folded":
                backend.state(declared.folded).add(argument)
            case "clear":
                for state in (declared.items, declared.value, declared.folded):
                    backend.state(state).clear()
            case "read":
                found(backend, declared)


Found = tuple[int, list[Any], dict[int, int], int | None, list[int] | None]


def found(backend: KeyedStateBackend, declared: Declared) -> Found:
    """What the current key holds."""
    return (
        backend.state(declared.value).value(),
        backend.state(declared.items).get(),
        dict(backend.state(declared.table).items()),
        backend.state(declared.total).get(),
        backend.state(declared.folded).get(),
    )


def looked_at(backend: KeyedStateBackend, declared: Declared) -> dict[Any, Found]:
    """What all keys hold, as a question sees it, which is no update."""
    seen = {}
    with backend.read_only():
        for key in KEYS:
            backend.current_key = key
            seen[key] = found(backend, declared)
    return {key: held for key, held in seen.items() if held != (-1, [], {}, None, None)}


Part = tuple[Any, int]
"""A value and the time of its last update."""


@dataclass
class Model:
    """The same with a list of parts for each state and key, and nothing ever cleaned up."""

    clock: Hands
    declared: Declared
    parts: dict[tuple[str, Any], list[Part]] = field(default_factory=dict)

    def live(self, state: str, key: Any) -> list[Part]:
        limit = self.clock.now_ms - TTL_MS
        return [part for part in self.parts.get((state, key), []) if part[1] > limit]

    def written_ms(self, before: Sequence[Part] = ()) -> int:
        ttl = self.declared.value.ttl
        assert ttl is not None
        stamp = self.clock.written_ms("") if ttl.clock == "event" else self.clock.now_ms
        return max([stamp, *(time_ms for _, time_ms in before)])

    def apply(self, script: Iterable[Step]) -> None:
        for what, key, argument in script:
            self.clock.late_ms = argument - 3
            match what:
                case "advance":
                    self.clock.now_ms += argument
                case "value":
                    self.parts["value", key] = [(argument, self.written_ms(self.live("value", key)))]
                case "items":
                    self.parts.setdefault(("items", key), []).append(([argument], self.written_ms()))
                case "replace":
                    self.parts["items", key] = [([argument], self.written_ms())] * argument
                case "table":
                    held = {part[0][0]: part for part in self.live("table", key)}
                    before = [held[argument]] if argument in held else []
                    held[argument] = (argument, argument), self.written_ms(before)
                    self.parts["table", key] = list(held.values())
                case "remove":
                    held = {part[0][0]: part for part in self.live("table", key)}
                    held.pop(argument, None)
                    self.parts["table", key] = list(held.values())
                case "total":
                    live = self.live("total", key)
                    self.parts["total", key] = [(sum(part[0] for part in live) + argument, self.written_ms(live))]
                case "folded":
                    live = self.live("folded", key)
                    values = live[0][0] if live else []
                    self.parts["folded", key] = [([*values, argument], self.written_ms(live))]
                case "clear":
                    for state in ("items", "value", "folded"):
                        self.parts.pop((state, key), None)
                case "read":
                    self._read(key)

    def _read(self, key: Any) -> None:
        ttl = self.declared.value.ttl
        assert ttl is not None
        if ttl.on == "read":
            for state in ("value", "items", "table", "total", "folded"):
                live = self.live(state, key)
                self.parts[state, key] = [(value, self.written_ms([(value, time)])) for value, time in live]

    def looked_at(self) -> dict[Any, Found]:
        seen: dict[Any, Found] = {}
        for key in KEYS:
            value, total, folded = (self.live(state, key) for state in ("value", "total", "folded"))
            seen[key] = (
                value[0][0] if value else -1,
                [item for item, _ in self.live("items", key)],
                dict(entry for entry, _ in self.live("table", key)),
                total[0][0] if total else None,
                folded[0][0] if folded else None,
            )
        return {key: held for key, held in seen.items() if held != (-1, [], {}, None, None)}

    def entry_count(self) -> int:
        return sum(bool(self.live(*at)) for at in self.parts)


class ExpiringStateContract(ABC):
    """Subclass as `class TestMine(ExpiringStateContract)`, with `make_expiring`."""

    @abstractmethod
    def make_expiring(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        """A new, empty backend for these of MAX_PARALLELISM key groups."""

    def timed(self, clock: Hands, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        backend = self.make_expiring(key_groups)
        backend.clock = clock
        return backend

    def taken(self, backend: KeyedStateBackend) -> list[KeyedStateHandle]:
        return self.written(backend.snapshot(CheckpointId(1)))

    def written(self, snapshot: KeyedSnapshot) -> list[KeyedStateHandle]:
        handle = snapshot(None)  # type: ignore[arg-type]
        return [] if handle is None else [handle]

    def again(
        self, handles: Sequence[KeyedStateHandle], clock: Hands, key_groups: range = range(MAX_PARALLELISM)
    ) -> KeyedStateBackend:
        backend = self.timed(clock, key_groups)
        backend.restore(handles, lambda handle: handle.data or b"")
        return backend

    @ways
    @contract
    @given(script=scripts())
    def test_reads_are_those_of_a_model_with_times(self, clock: Any, on: Any, script: list[Step]) -> None:
        declared = Declared(Ttl(TTL_MS, clock=clock, on=on))
        hands, model = Hands(), Model(Hands(), declared)
        backend = self.timed(hands)
        for step in script:
            apply(backend, declared, hands, [step])
            model.apply([step])
            assert looked_at(backend, declared) == model.looked_at()
        assert backend.entry_count() == model.entry_count()
        live = {name: {key for key in KEYS if model.live(name, key)} for name in ("value", "items", "table")}
        assert {name: set(backend.keys(name)) for name in live} == live
        assert {name: key_count(backend, name) for name in live} == {name: len(keys) for name, keys in live.items()}
        assert set(backend.each_key()) == set(model.looked_at())

    @ways
    @contract
    @given(before=scripts(), after=scripts())
    def test_a_restore_changes_no_age(self, clock: Any, on: Any, before: list[Step], after: list[Step]) -> None:
        declared = Declared(Ttl(TTL_MS, clock=clock, on=on))
        hands, model = Hands(), Model(Hands(), declared)
        backend = self.timed(hands)
        apply(backend, declared, hands, before)
        model.apply(before)
        restored = self.again(self.taken(backend), hands)
        for step in after:
            apply(restored, declared, hands, [step])
            model.apply([step])
            assert looked_at(restored, declared) == model.looked_at()

    @ways
    @contract
    @given(before=scripts(), after=scripts())
    def test_what_happens_after_the_synchronous_part_does_not_show_in_the_snapshot(
        self, clock: Any, on: Any, before: list[Step], after: list[Step]
    ) -> None:
        declared = Declared(Ttl(TTL_MS, clock=clock, on=on))
        hands, model = Hands(), Model(Hands(), declared)
        backend = self.timed(hands)
        apply(backend, declared, hands, before)
        model.apply(before)
        then_ms = hands.now_ms
        snapshot = backend.snapshot(CheckpointId(1))
        apply(backend, declared, hands, after)
        handles = self.written(snapshot)
        hands.now_ms = then_ms
        assert looked_at(self.again(handles, hands), declared) == model.looked_at()

    @ways
    @contract
    @given(script=scripts(), wait_ms=st.integers(0, TTL_MS), cut=st.integers(1, MAX_PARALLELISM - 1))
    def test_a_rescale_changes_no_age(self, clock: Any, on: Any, script: list[Step], wait_ms: int, cut: int) -> None:
        declared = Declared(Ttl(TTL_MS, clock=clock, on=on))
        hands, model = Hands(), Model(Hands(), declared)
        backend = self.timed(hands)
        apply(backend, declared, hands, script)
        model.apply(script)
        handles = self.taken(backend)
        hands.now_ms += wait_ms
        model.clock.now_ms += wait_ms
        seen: dict[Any, Found] = {}
        for own in (range(cut), range(cut, MAX_PARALLELISM)):
            shares = [share for handle in handles if (share := cut_handle(handle, own)) is not None]
            seen |= looked_at(self.again(shares, hands, own), declared)
        assert seen == model.looked_at()

    # --- one by one

    def filled(self, declared: Declared, hands: Hands) -> KeyedStateBackend:
        backend = self.timed(hands)
        apply(
            backend, declared, hands, [Step(what, "JFK", 3) for what in ("value", "items", "table", "total", "folded")]
        )
        return backend

    ALL = (3, [[3]], {3: 3}, 3, [3])

    @pytest.mark.parametrize("clock", ["processing", "event"])
    def test_all_is_there_until_its_time_and_nothing_after(self, clock: Any) -> None:
        """TtlStateTestBase.testExactExpirationOnWrite."""
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock=clock))
        backend = self.filled(declared, hands)
        hands.now_ms += TTL_MS - 1
        assert found(backend, declared) == self.ALL
        assert backend.entry_count() == 5
        hands.now_ms += 1
        assert found(backend, declared) == (-1, [], {}, None, None)
        table = backend.state(declared.table)
        assert (table.get(3), table.contains(3), table.is_empty(), table.keys()) == (None, False, True, [])
        assert (backend.entry_count(), list(backend.each_key())) == (0, [])
        assert [list(backend.keys(name)) for name in ("value", "items", "table", "total", "folded")] == [[]] * 5

    def test_a_map_of_a_key_is_empty_whatever_other_keys_hold(self) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS))
        backend = self.filled(declared, hands)
        table = backend.state(declared.table)
        assert not table.is_empty()
        backend.current_key = "LGA"
        assert table.is_empty()

    def test_a_snapshot_of_what_has_expired_holds_nothing(self) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS))
        backend = self.filled(declared, hands)
        hands.now_ms += TTL_MS
        assert self.taken(backend) == []

    def test_a_read_is_an_update_where_the_ttl_says_so(self) -> None:
        """testExactExpirationOnRead."""
        hands = Hands()
        kept, lost = Declared(Ttl(TTL_MS, on="read")), Declared(Ttl(TTL_MS))
        for declared, expected in ((kept, self.ALL), (lost, (-1, [], {}, None, None))):
            backend = self.filled(declared, hands)
            hands.now_ms += TTL_MS - 1
            assert found(backend, declared) == self.ALL
            hands.now_ms += TTL_MS - 1
            assert found(backend, declared) == expected

    @pytest.mark.parametrize("on", ["write", "read"])
    def test_late_records_make_nothing_older(self, on: Any) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock="event", on=on))
        backend = self.filled(declared, hands)  # at 1000
        for what in ("value", "table", "total", "folded", "read"):
            apply(backend, declared, hands, [Step(what, "JFK", 3)])
        hands.late_ms = 7
        backend.state(declared.value).update(4)
        backend.state(declared.items).add([4])
        backend.state(declared.table).put(3, 4)
        backend.state(declared.total).add(4)
        backend.state(declared.folded).add(4)
        if on == "read":
            found(backend, declared)
        hands.now_ms += TTL_MS - 7
        assert looked_at(backend, declared) == {"JFK": (4, [[3]], {3: 4}, 10, [3, 3, 4])}
        hands.now_ms += 6
        assert looked_at(backend, declared) == {"JFK": (4, [[3]], {3: 4}, 10, [3, 3, 4])}
        hands.now_ms += 1
        assert looked_at(backend, declared) == {}

    def test_a_question_is_no_update_and_changes_nothing(self) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, on="read"))
        backend = self.filled(declared, hands)
        hands.now_ms += TTL_MS - 1
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        with backend.read_only():
            for what in ("value", "items", "replace", "table", "total", "folded", "clear"):
                with pytest.raises(ReadOnlyState):
                    apply(backend, declared, hands, [Step(what, "JFK", 3)])
        hands.now_ms += 1
        assert looked_at(backend, declared) == {}

    @pytest.mark.parametrize("clock", ["processing", "event"])
    def test_state_stored_without_a_ttl_counts_as_written_when_it_is_restored(self, clock: Any) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock=clock))
        handles = self.taken(self.filled(Declared(None), hands))
        hands.now_ms += 100 * TTL_MS
        backend = self.again(handles, hands)
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        hands.now_ms += TTL_MS - 1
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        hands.now_ms += 1
        assert looked_at(backend, declared) == {}

    def test_state_stored_with_a_ttl_is_restored_without(self) -> None:
        hands, declared = Hands(), Declared(None)
        handles = self.taken(self.filled(Declared(Ttl(TTL_MS)), hands))
        hands.now_ms += 100 * TTL_MS
        assert looked_at(self.again(handles, hands), declared) == {"JFK": self.ALL}

    def test_times_by_another_clock_do_not_count(self) -> None:
        hands = Hands()
        handles = self.taken(self.filled(Declared(Ttl(TTL_MS, clock="event")), hands))
        hands.now_ms += 100 * TTL_MS
        assert looked_at(self.again(handles, hands), Declared(Ttl(TTL_MS))) == {"JFK": self.ALL}

    def test_another_duration_counts_from_the_same_times(self) -> None:
        hands = Hands()
        handles = self.taken(self.filled(Declared(Ttl(TTL_MS)), hands))
        hands.now_ms += 2 * TTL_MS - 1
        assert looked_at(self.again(handles, hands), Declared(Ttl(2 * TTL_MS))) == {"JFK": self.ALL}
        hands.now_ms += 1
        assert looked_at(self.again(handles, hands), Declared(Ttl(2 * TTL_MS))) == {}

    @pytest.mark.parametrize("restores", [1, 2])
    def test_what_is_restored_before_the_first_watermark_counts_from_that(self, restores: int) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock="event"))
        handles = self.taken(self.filled(Declared(None), hands))
        hands.event_is_known = False
        backend = self.again(handles, hands)
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        for _ in range(1, restores):  # and once more, before event time is known
            backend = self.again(self.taken(backend), hands)
            assert looked_at(backend, declared) == {"JFK": self.ALL}
        hands.event_is_known = True
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        hands.now_ms += TTL_MS - 1
        backend = self.again(self.taken(backend), hands)
        assert looked_at(backend, declared) == {"JFK": self.ALL}
        hands.now_ms += 1
        assert looked_at(backend, declared) == {}

    def test_what_came_before_the_first_watermark_counts_from_that_though_it_was_carried_along_undeclared(self) -> None:
        hands, declared = Hands(event_is_known=False), Declared(Ttl(TTL_MS, clock="event"))
        carried = self.again(self.taken(self.filled(declared, hands)), hands)
        backend = self.again(self.taken(carried), hands)
        hands.event_is_known = True
        assert looked_at(backend, declared) == {"JFK": self.ALL}

    @pytest.mark.parametrize("is_first", [True, False])
    def test_what_came_before_the_first_watermark_counts_from_that_beside_a_subtask_that_had_one(
        self, is_first: bool
    ) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock="event"))
        keys: dict[bool, int] = {}
        for key in range(100):
            keys.setdefault(key_group(key, MAX_PARALLELISM) < MAX_PARALLELISM // 2, key)
        handles: dict[bool, list[KeyedStateHandle]] = {}
        for is_low, own in ((True, range(MAX_PARALLELISM // 2)), (False, range(MAX_PARALLELISM // 2, MAX_PARALLELISM))):
            hands.event_is_known = is_low
            part = self.timed(hands, own)
            part.current_key = keys[is_low]
            part.state(declared.value).update(7)
            handles[is_low] = self.taken(part)
        hands.event_is_known = False
        backend = self.again([*handles[is_first], *handles[not is_first]], hands)
        state = backend.state(declared.value)
        hands.now_ms += TTL_MS - 1
        hands.event_is_known = True
        for key in keys.values():
            backend.current_key = key
            assert state.value() == 7

    def test_parts_from_before_the_first_watermark_count_from_that_beside_others_that_have_times(self) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS, clock="event"))
        handles = self.taken(self.filled(declared, hands))
        hands.event_is_known = False
        backend = self.again(handles, hands)
        backend.current_key = "JFK"
        backend.state(declared.items).add([4])
        backend.state(declared.table).put(4, 4)
        backend = self.again(self.taken(backend), hands)
        assert looked_at(backend, declared) == {"JFK": (3, [[3], [4]], {3: 3, 4: 4}, 3, [3])}
        hands.now_ms += TTL_MS - 1
        hands.event_is_known = True
        assert looked_at(backend, declared) == {"JFK": (3, [[3], [4]], {3: 3, 4: 4}, 3, [3])}
        hands.now_ms += 1
        assert looked_at(backend, declared) == {"JFK": (-1, [[4]], {4: 4}, None, None)}

    def test_what_is_carried_along_undeclared_keeps_its_times(self) -> None:
        hands, declared = Hands(), Declared(Ttl(TTL_MS))
        handles = self.taken(self.filled(declared, hands))
        hands.now_ms += TTL_MS - 1
        handles = self.taken(self.again(handles, hands))
        assert looked_at(self.again(handles, hands), declared) == {"JFK": self.ALL}
        hands.now_ms += 1
        assert looked_at(self.again(handles, hands), declared) == {}

    def test_merged_namespaces_have_the_newest_time_and_items_their_own(self) -> None:
        """testMergeNamespaces of the merging kinds."""
        hands, declared = Hands(), Declared(Ttl(TTL_MS))
        backend = self.timed(hands)
        for namespace in (0, 4, 8):
            hands.now_ms = 1000 + namespace
            for state in (declared.items, declared.total, declared.folded):
                backend.state(state).set_namespace(namespace)
            apply(backend, declared, hands, [Step(what, "JFK", namespace) for what in ("items", "total", "folded")])
        hands.now_ms = 1000 + TTL_MS
        for state in (declared.items, declared.total, declared.folded):
            backend.state(state).merge_namespaces(4, [0, 8])
            backend.state(state).set_namespace(4)
        assert found(backend, declared)[1::2] == ([[4], [8]], 12)
        assert found(backend, declared)[4] == [4, 8]
        hands.now_ms = 1004 + TTL_MS
        assert found(backend, declared)[1::2] == ([[8]], 12)
        hands.now_ms = 1008 + TTL_MS
        assert found(backend, declared) == (-1, [], {}, None, None)
        assert backend.entry_count() == 0
