"""FrozenCalls: what is in flight, as a part of the operator's keyed state. To bytes and back.

A call is stored under its key, or, where the operator has none, under its number, dealt out over the subtask's key
groups: so calls go with the key groups when a job is rescaled. A call whose results are there is stored with them, and
is not made again. One that runs, or waits, is stored with its input alone, and with its idempotency key if it was ever
begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, assert_never

from ...messages import MalformedMessage, pack_plain
from ...state import pack_batch, unpack_batch
from ...state.backends.frozen_state import Stored
from ...state.columns.packed_columns import column_of, packed
from ...state.keys.key_groups import key_groups_of_list
from ...state.kinds.record_serializer import Convert
from ...state.kinds.schema_fit import Schema
from ...state.kinds.state_descriptions import CALLS
from ..flow.elements import AnyBatch
from ..operators.timers import KeyedTimer
from .call import CallKind

NAME: Final = CALLS.name

_TOGETHER: Final = "together"
"""Where the number of a call would stand."""

Results = list[tuple[str, Any]]
"""What a call has emitted, in order: the name of a side output or "", and a batch."""


class CallInFlight(NamedTuple):
    """One call, as a snapshot holds it."""

    key: Any
    number: int
    identity: str
    """Empty for one that was never begun."""
    kind: CallKind
    record: Any
    """A record, a KeyedTimer, or a batch with its times."""
    time_ms: int | None
    watermark_ms: int
    input_index: int
    tries: int
    """Those that have failed: one that runs is begun again."""
    began_wall_ms: int
    behind_ms: int
    """The watermark that it waits behind; NO_WATERMARK for one that waits for none."""
    again_wall_ms: int
    """When it is to be tried again, by the time of day; 0: at once."""
    results: Results | None
    """None: it is not done."""

    @property
    def has_not_begun(self) -> bool:
        """Whether it is a record that waits, and no more: most are, behind a large batch."""
        has_begun = self.identity or self.tries or self.began_wall_ms or self.again_wall_ms
        return self.kind == "record" and self.results is None and not has_begun


@dataclass(slots=True)
class FrozenCalls:
    """Those of one moment. `later` gives those that are put into this form only when they are written."""

    calls: list[CallInFlight]
    later: Callable[[], Iterable[CallInFlight]]
    has_later: bool
    dealt_over: range | None = None
    """The key groups of the subtask, where its operator has no keys."""
    name: str = NAME
    kind: str = CALLS.kind
    schema: Schema = None
    in_flight: int = 0
    """How many they are, from when they are written."""

    @property
    def is_empty(self) -> bool:
        return not self.calls and not self.has_later

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        calls = [*self.calls, *self.later()]
        self.calls, self.in_flight = [], sum(_records_in(each) for each in calls)
        groups: dict[int, list[CallInFlight]] = defaultdict(list)
        own_groups = self.dealt_over
        if own_groups is not None:
            for call in calls:
                groups[own_groups[call.number % len(own_groups)]].append(call)
        elif calls:
            for group, call in zip(
                key_groups_of_list([each.key for each in calls], max_parallelism), calls, strict=True
            ):
                groups[int(group)].append(call)
        for group, own in groups.items():
            together = [each for each in own if encode_key is None and each.has_not_begun]
            single = own if not together else [each for each in own if not each.has_not_begun]
            keys = [each.key if encode_key is None else encode_key(each.key) for each in single]
            values = [_packed(each) for each in single]
            for packed_together in _packed_together(together):
                keys.append(packed_together[2][0])
                values.append(packed_together)
            columns = column_of(keys), column_of(values)
            yield group, pack_plain([(), *(packed(column, 0, len(own)) for column in columns)])


def _records_in(call: CallInFlight) -> int:
    return len(call.record) if call.kind == "batch" and call.record is not None else 1


def calls_of(stored: Stored) -> Iterator[CallInFlight]:
    """What a snapshot holds. Raises MalformedMessage."""
    for _, keys, values in stored.entries():
        for key, value in zip(keys, values, strict=True):
            if isinstance(value, tuple) and value[:1] == (_TOGETHER,):
                yield from _unpacked_together(value)
            else:
                yield _unpacked(key, value)


def _packed(call: CallInFlight) -> tuple[Any, ...]:
    record: Any
    match call.kind:
        case "record":
            record = pack_batch([call.record])
        case "timer":
            record = tuple(call.record)
        case "batch":
            record = pack_batch(call.record)
        case _:
            assert_never(call.kind)
    results = None if call.results is None else [(tag, pack_batch(batch)) for tag, batch in call.results]
    return (*call[1:4], record, *call[5:-1], results)


def _packed_together(calls: list[CallInFlight]) -> Iterator[tuple[Any, ...]]:
    """Of each input, and behind each watermark, all that have not begun: their records are columns."""
    alike: dict[tuple[int, int], list[CallInFlight]] = defaultdict(list)
    for call in calls:
        alike[call.input_index, call.behind_ms].append(call)
    for (input_index, behind_ms), each in alike.items():
        keys, numbers, _, _, records, times, watermarks, *_ = map(list, zip(*each, strict=True))
        yield _TOGETHER, numbers, keys, pack_batch(records), times, watermarks, input_index, behind_ms


def _unpacked_together(value: tuple[Any, ...]) -> Iterator[CallInFlight]:
    match value:
        case (_, list() as numbers, list() as keys, bytes() as stored, list() as times, list() as marks, int(), int()):
            records = unpack_batch(stored)
        case _:
            raise MalformedMessage(f"wanted records that have not begun, found {value!r:.60}")
    if not isinstance(records, list) or len({len(each) for each in (numbers, keys, records, times, marks)}) != 1:
        raise MalformedMessage(f"wanted {len(numbers)} records that have not begun, found {value!r:.60}")
    input_index, behind_ms = value[6:]
    for key, number, record, time_ms, mark_ms in zip(keys, numbers, records, times, marks, strict=True):
        yield CallInFlight(key, number, "", "record", record, time_ms, mark_ms, input_index, 0, 0, behind_ms, 0, None)


def _unpacked(key: Any, value: Any) -> CallInFlight:
    match value:
        case (
            int(),
            str(),
            "record" | "timer" | "batch" as kind,
            stored,
            int() | None,
            int(),
            int(),
            int(),
            int(),
            int(),
            int(),
            list() | None as results,
        ):
            emitted = None if results is None else [(tag, unpack_batch(batch)) for tag, batch in results]
            return CallInFlight._make((key, *value[:3], _record(kind, stored), *value[4:-1], emitted))
        case _:
            raise MalformedMessage(f"wanted a record in flight, found {value!r:.60}")


def _record(kind: CallKind, stored: Any) -> Any:
    if kind == "timer":
        return KeyedTimer(*stored)
    batch: AnyBatch = unpack_batch(stored)
    if kind == "batch":
        return batch
    if not isinstance(batch, list) or len(batch) != 1:
        raise MalformedMessage(f"wanted one record, found {batch!r:.60}")
    return batch[0]
