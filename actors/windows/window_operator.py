"""WindowOperator: windows per key, one record at a time: any assigner, trigger and evictor. Flink: WindowOperator,
EvictingWindowOperator.

Each record goes into its windows, whose contents are keyed state in the window's namespace, and the trigger is asked. A
window is forgotten when time has reached its last moment and the allowed lateness after it, by a timer of
the operator's own; so no state is left behind, and no timer. A record all of whose windows are forgotten is
late: it is counted, and goes to the side output `late`. Results have the window's last time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from ...messages import StateDescription
from ...state.backends.backend import key_count
from ...state.kinds.descriptors import ListState, MapState
from ...state.kinds.state_declaration import KeyedStateDeclaration, MergingStateDeclaration
from ...state.kinds.state_descriptions import description_of
from ..errors import UnwantedResult
from ..flow.changelog import AFTER, BEFORE, INSERT, Changelog
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Batch
from ..flow.records import rows_of
from ..operators.collector import Collector, OutputTag
from ..operators.keyed_operator import KeyedOperator
from ..operators.lateness import late_ms
from ..operators.operator import Takes
from ..operators.timers import KeyedTimer
from ..unrun import refuse
from .changes import Change
from .evictors import TimedRecord
from .merging_windows import Merge, MergingWindows, OpenWindows
from .trigger_state import TriggerState
from .triggers import CONTINUE, PurgingTrigger, TriggerResult, said_by
from .window import GLOBAL_WINDOW, TimeWindow, Window, namespace_of, window_of
from .window_contents import CONTENTS, AllRecords, Contents
from .window_function import EmitEach, ProcessWindowFunction, states_of
from .window_settings import LATE, WindowSettings

log = logging.getLogger(__name__)

Place: TypeAlias = tuple[int, ...]
"""The namespace of a window's contents: the window itself, or the slot of one that can merge."""


class WindowOperator(KeyedOperator):
    """`contents`: how a window holds its records; `function`: what is made of them when it fires."""

    late_tag: ClassVar[OutputTag] = LATE

    takes: ClassVar[Takes] = "any"

    late_records: int = 0
    """How many records were late in this attempt."""

    _reached_ms: int = NO_WATERMARK
    """The operator's watermark, by which windows fire. While a record is processed `watermark` may be ahead of it: that
    of the record's own split, by which the record is late or not.
    """
    _open_windows: MapState[Any, int] = MapState(object, int, name="open windows")
    """Of a key whose windows can merge: the slot of each, see MergingWindows."""
    _trigger_values: MapState[str, Any] = MapState(str, object, name="trigger values")
    _emitted: ListState[Any] = ListState(object, name="emitted results")
    """Of retracting windows: what is to be taken back."""

    def __init__(
        self,
        settings: WindowSettings,
        contents: Contents | None = None,
        function: ProcessWindowFunction | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:
        """Without a function the contents themselves are emitted. `keys`: the columns that the key is made of; None
        where a function makes it.
        """
        self._settings = settings
        self._made_by = settings.rules if keys is None else {**settings.rules, "keys": f"[{', '.join(keys)}]"}
        self._how = AllRecords() if contents is None else contents
        self.function = EmitEach() if function is None else function
        self.allows_lateness = getattr(function, "allows_lateness", True)
        settings.check_function(self.function, self._how.aggregate)
        self._assigner = settings.assigner
        self._trigger = settings.trigger
        self._evictor = settings.evictor
        self._is_retracting = settings.mode == "retracting"
        self._cleanup_ms = settings.cleanup_ms
        self._trigger_cleans_up = settings.trigger_cleans_up

    @property
    def time(self) -> str | None:
        """What time its windows go by: see WindowAssigner."""
        return self._assigner.time

    @property
    def never_fires(self) -> bool:
        return self._settings.never_fires

    @property
    def _changelog(self) -> Changelog | None:
        """Results of several keys and windows may be equal, and some of them taken back: in any number."""
        return Changelog() if self._is_retracting else None

    def open(self) -> None:
        contents = self._declaration()
        self._contents: Any = self._backend.state(contents)
        self._holds_list = isinstance(contents, ListState)
        self._windows = OpenWindows()
        self._context = TriggerState(self, self._trigger_values, self._assigner.time, self._reached)
        function = self.function
        function.operator = self
        self._own: list[Any] = []
        for attribute, declared in _own_states(function).items():
            accessor: Any = self._backend.state(declared)
            setattr(function, attribute, accessor)
            if attribute not in function.states_of_key:
                self._own.append(accessor)
        function.open()

    def close(self) -> None:
        self.function.close()

    def _own_states(self) -> tuple[StateDescription, ...]:
        declared = (self._declaration(), *_own_states(self.function).values())
        return (*super()._own_states(), *map(description_of, declared))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        """Records of any kind come out. Whether the columns fit is said here, if they are known."""
        (schema,) = inputs
        if schema is not None:
            self.function._check_columns(schema)
        return None

    def _declaration(self) -> MergingStateDeclaration:
        declared = self._how.declaration() if self._evictor is None else ListState(object, name=CONTENTS)
        declared.made_by = {**self._made_by, "contents": self._how.rule}
        return declared

    # -- a record

    def process_batch(self, batch: Batch, out: Collector) -> None:
        self._reached_ms = self.watermark
        super().process_batch(batch, out)

    def process(self, record: Any, out: Collector) -> None:
        assigner, is_late = self._assigner, True
        over_ms = self.watermark if assigner.time == "event" else NO_WATERMARK
        for assigned in assigner.assign(record, self._time_ms()):
            window: Window = assigned
            place: Place | None = tuple(window)
            if assigner.merges:
                window, place = self._merged(window)
            cleanup_ms = self._cleanup_ms(window)
            if place is not None and cleanup_ms > over_ms:
                is_late = False
                self._add(record, window, place, cleanup_ms, out)
        if is_late and assigner.time == "event":
            self._skip(record, out)

    def _skip(self, record: Any, out: Collector) -> None:
        """A record belongs to no open window: it is late, or lies in a gap between windows."""
        if self.timestamp + self._settings.allowed_lateness_ms <= self.watermark:
            self.late_records += 1
            self.most_late_ms = max(self.most_late_ms, late_ms(self.timestamp, self.watermark))
            out.collect_to(LATE, record)

    def _time_ms(self) -> int:
        """By which the assigner goes."""
        match self._assigner.time:
            case "event":
                return self.timestamp
            case "processing":
                return self.processing_time()
            case None:
                return 0

    def _add(self, record: Any, window: Window, place: Place, cleanup_ms: int, out: Collector) -> None:
        time_ms = None if self.timestamps is None else self.timestamp
        contents = self._contents
        contents.set_namespace(place)
        contents.add(record if self._evictor is None else (time_ms, record))
        namespace = namespace_of(window)
        result = self._trigger.on_record(record, time_ms, window, self._context.enter(namespace, place, cleanup_ms))
        if result is not CONTINUE:
            self._act(result, window, place, out)
        self._set_cleanup(cleanup_ms, namespace)

    def _reached(self) -> int:
        return self._reached_ms

    # -- windows that merge

    def _merged(self, added: Window) -> tuple[Window, Place | None]:
        """The open window that a new one has become a part of, and its place; None where that is over already."""
        assert isinstance(added, TimeWindow), "only windows of time merge"
        kept = self._open_windows
        windows = self._windows.of(self.key, kept.items)
        merge = windows.with_window(added)
        if merge.is_new:
            if self._assigner.time == "event" and self._cleanup_ms(merge.window) <= self.watermark:
                return merge.window, None
            if merge.replaced:
                self._merge_into(merge, windows)
            for window in merge.replaced:
                kept.remove(window)
            kept.put(tuple(merge.window), merge.slot)
            windows.take(merge)
        return merge.window, (merge.slot,)

    def _merge_into(self, merge: Merge, windows: MergingWindows) -> None:
        """Contents, triggers and timers of the replaced windows become those of one."""
        place = (merge.slot,)
        places = [(slot,) for slot in windows.slots_of(merge.replaced)]
        values = [self._context.take(each) for each in places]
        self._trigger.on_merge(merge.window, self._at(merge.window, place).with_merged(values))
        for window, each, had in zip(merge.replaced, places, values, strict=True):
            self._trigger.clear(window, self._at(window, each).with_values(had))
            self._delete_cleanup(window)
        emptied = [each for each in places if each != place]
        if emptied:
            for state in self._states():
                state.merge_namespaces(place, emptied)

    # -- a timer

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self._reached_ms = self.watermark
        window = window_of(timer.namespace)
        place = self._place_of(window)
        if place is None:  # a trigger has not deleted the timer of a window that merged since
            return
        context = self._at(window, place)
        if timer.domain == "event":
            result = self._trigger.on_event_time(timer.time_ms, window, context)
        else:
            result = self._trigger.on_processing_time(timer.time_ms, window, context)
        if result is not CONTINUE:
            self._act(result, window, place, out)
        if timer.domain == self._assigner.time and timer.time_ms >= window.max_timestamp:
            cleanup_ms = self._cleanup_ms(window)
            if timer.time_ms >= cleanup_ms:
                self._forget(window, place)
            else:  # the timer was set with a shorter lateness: it goes on from there
                self._set_cleanup(cleanup_ms, namespace_of(window))

    def _at(self, window: Window, place: Place) -> TriggerState:
        return self._context.enter(namespace_of(window), place, self._cleanup_ms(window))

    def _place_of(self, window: Window) -> Place | None:
        """Of an open window."""
        if not self._assigner.merges:
            return namespace_of(window)
        slot = self._open_windows.get(namespace_of(window))
        return None if slot is None else (slot,)

    def _set_cleanup(self, cleanup_ms: int, namespace: Place) -> None:
        """Have the window forgotten when it is over; one that lasts to the end of time never is."""
        if cleanup_ms == END_OF_TIME or self._trigger_cleans_up:
            return
        if self._assigner.time == "event":
            self.timers.at_event_time(cleanup_ms, namespace)
        elif self._assigner.time == "processing":
            self.timers.at_processing_time(cleanup_ms, namespace)

    def _delete_cleanup(self, window: Window) -> None:
        cleanup_ms = self._cleanup_ms(window)
        if self._assigner.time == "event":
            self.timers.delete_event_time(cleanup_ms, namespace_of(window))
        else:
            self.timers.delete_processing_time(cleanup_ms, namespace_of(window))

    def _forget(self, window: Window, place: Place) -> None:
        """The window is over: leave nothing of it."""
        self._trigger.clear(window, self._at(window, place))
        self._context.forget()
        self._enter_own(place)
        self.function.clear(window)
        for state in self._states():
            state.set_namespace(place)
            state.clear()
        if self._assigner.merges:
            self._open_windows.remove(namespace_of(window))
            self._windows.close(self.key, (window.start, window.end))

    def _data_ended(self) -> None:
        """Windows without an end fire as their trigger says, and it may have waited for more records."""
        super()._data_ended()
        if self._assigner.time is None and isinstance(self._trigger, PurgingTrigger):
            left = key_count(self._backend, self._declaration().name, namespace_of(GLOBAL_WINDOW))
            if left:
                log.warning(
                    "operator %r (subtask %d): the data ended while windows of %d key%s held records for which their "
                    "trigger had not fired yet: no result has them. Windows that end by the clock give them as well: "
                    "window(tumbling(seconds=5, time='processing')).trigger(purging(any_of(count(n), "
                    "processing_time())))",
                    *(self.context.name, self.context.subtask_index, left, "s" * (left > 1)),
                )

    # -- a firing

    def _act(self, result: TriggerResult, window: Window, place: Place, out: Collector) -> None:
        if said_by(self._trigger, result).fires:
            self._contents.set_namespace(place)
            held = self._contents.get()
            if held if self._holds_list else held is not None:
                before_ms = out.time_ms
                out.stamp()
                out.time_ms = window.max_timestamp
                self._fire_window(window, place, held, out)
                out.stamp()
                out.time_ms = before_ms
        if result.purges:
            self._contents.set_namespace(place)
            self._contents.clear()

    def _fire_window(self, window: Window, place: Place, held: Any, out: Collector) -> None:
        """Have the function make its results of what the window holds."""
        if self._evictor is None:
            self._emit(window, place, self._how.given(held), out)
            return
        records = [TimedRecord(*pair) for pair in held]
        kept = self._staying("before", self._evictor.before(records, window))
        if kept:
            self._emit(window, place, self._how.combined([each.record for each in kept]), out)
        left = self._staying("after", self._evictor.after(kept, window))
        if len(left) < len(records):
            self._contents.update([tuple(each) for each in left])

    def _staying(self, method: str, records: Sequence[TimedRecord] | None) -> Sequence[TimedRecord]:
        if records is None:
            raise UnwantedResult(
                f"{type(self._evictor).__name__}.{method} returned None: wanted the records that stay, as in "
                "`return records[1:]`"
            )
        return records

    def _emit(self, window: Window, place: Place, records: Sequence[Any], out: Collector) -> None:
        self._enter_own(place)
        if not self._is_retracting:
            self._call(window, records, out)
            return
        made = Collector()
        self._call(window, records, made)
        results = [record for batch in made.drain() for record in _records(batch)]
        self._emitted.set_namespace(place)
        before = self._emitted.get()
        if results != before:
            for record in before:
                out.collect(Change(BEFORE, record))
            for record in results:
                out.collect(Change(AFTER if before else INSERT, record))
            self._emitted.update(results)
        for tag, batch in made.sides():
            out.emit_to(OutputTag(tag), batch)

    def _call(self, window: Window, records: Sequence[Any], out: Collector) -> None:
        process: Callable[..., Any] = self.function.process
        if (result := process(window, records, out)) is not None:
            refuse(f"{type(self.function).__name__}.process", result)

    def _enter_own(self, place: Place) -> None:
        """The states of the function are those of this window."""
        for state in self._own:
            state.set_namespace(place)

    def _states(self) -> list[Any]:
        """All that a window has under its place, but what its trigger has."""
        return [self._contents, *self._own, *([self._emitted] if self._is_retracting else [])]

    # -- the end

    def on_end(self, out: Collector) -> None:
        """Windows of processing time end with the data: nothing more can come into them."""
        if self._assigner.time != "processing":
            return
        for time_ms, key, namespace in list(self.timers.queues.processing.due(END_OF_TIME)):
            window = window_of(namespace)
            if time_ms == self._cleanup_ms(window):
                self._enter_key(key)
                self.on_timer(KeyedTimer(time_ms, "processing", namespace), out)


def _records(batch: Any) -> list[Any]:
    """The records of what a function has emitted, one by one."""
    return rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch


def _own_states(function: ProcessWindowFunction) -> dict[str, KeyedStateDeclaration]:
    """The states of a window function, which say whether they belong to a window or to the key: neither finds what the
    other has stored.
    """
    found = {attribute: copy(declared) for attribute, declared in states_of(function).items()}
    for attribute, declared in found.items():
        declared.made_by = {"belongs to": "the key" if attribute in function.states_of_key else "one window"}
    return found
