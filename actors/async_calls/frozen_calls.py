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
from itertools import accumulate, repeat
from operator import itemgetter
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
from .batch_parts import form_of, part_of, together
from .call import CallKind

NAME: Final = CALLS.name

_TOGETHER: Final = "together"
"""Where the number of a call would stand: several in one value, which the first has; those behind it have None."""

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
    """A record, a KeyedTimer, or a batch with its times. Those of kind "waiting" are all of one key group, and the
    first one has this key and number.
    """
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
            for index, call in enumerate(calls):
                groups[own_groups[index % len(own_groups)]].append(call)
        elif calls:
            for group, call in zip(
                key_groups_of_list([each.key for each in calls], max_parallelism), calls, strict=True
            ):
                groups[int(group)].append(call)
        for group, own in groups.items():
            keys, values = [], list[Any]()
            for alike in _alike(own):
                keys += [each.key if encode_key is None else encode_key(each.key) for each in alike]
                values += [
                    _packed(alike[0]) if len(alike) == 1 else _packed_together(alike),
                    *[None] * (len(alike) - 1),
                ]
            columns = column_of(keys), column_of(values)
            yield group, pack_plain([(), *(packed(column, 0, len(own)) for column in columns)])


def _records_in(call: CallInFlight) -> int:
    return len(call.record) if call.kind in ("batch", "waiting") and call.record is not None else 1


def calls_of(stored: Stored) -> Iterator[CallInFlight]:
    """What a snapshot holds. Raises MalformedMessage."""
    for _, keys, values in stored.entries():
        at = 0
        while at < len(keys):
            value = values[at]
            if isinstance(value, tuple) and value[:1] == (_TOGETHER,):
                alike = _unpacked_together(keys[at:], value)
                at += len(alike)
                yield from alike
            else:
                yield _unpacked(keys[at], value)
                at += 1


def in_their_order(calls: list[CallInFlight], watermark_ms: int) -> tuple[list[tuple[int, CallInFlight]], int]:
    """Restored ones, with the watermark that each waits behind, no further than this one; and from where on there are
    only records that wait: of several subtasks some may wait before others that have begun.
    """
    ordered = sorted(
        ((min(each.behind_ms, watermark_ms), each.kind == "waiting", each.number, each) for each in calls),
        key=itemgetter(0, 1, 2),
    )
    behind = len(ordered)
    while behind and ordered[behind - 1][1]:
        behind -= 1
    return [(each[0], each[3]) for each in ordered], behind


def _alike(calls: list[CallInFlight]) -> Iterable[list[CallInFlight]]:
    """Records that can be packed as columns, and all others one by one."""
    alike: dict[Any, list[CallInFlight]] = defaultdict(list)
    for index, call in enumerate(calls):
        results, form = call.results, None
        is_column = call.kind == "record"
        if results:
            (tag, batch), *more = results
            form = form_of(batch)
            is_column = is_column and not (tag or more)
        alike[(call.input_index, call.behind_ms, results is None, form) if is_column else index].append(call)
    return alike.values()


def _packed(call: CallInFlight) -> tuple[Any, ...]:
    record: Any
    match call.kind:
        case "record":
            record = pack_batch([call.record])
        case "timer":
            record = tuple(call.record)
        case "batch" | "waiting":
            record = pack_batch(call.record)
        case _:
            assert_never(call.kind)
    results = None if call.results is None else [(tag, pack_batch(batch)) for tag, batch in call.results]
    return (*call[1:4], record, *call[5:-1], results)


def _packed_together(calls: list[CallInFlight]) -> tuple[Any, ...]:
    """Records of one input, behind one watermark: all done, with results of one form, or none of them."""
    _, numbers, identities, _, records, times, marks, _, tries, began, _, again, results = map(
        list, zip(*calls, strict=True)
    )
    counts, emitted = None, None
    if results[0] is not None:
        batches = [each[0][1] for each in results if each]
        counts = [len(each[0][1]) if each else 0 for each in results]
        emitted = pack_batch(together(batches)) if batches else None
    columns = numbers, identities, times, marks, tries, began, again
    return _TOGETHER, list(columns), pack_batch(records), calls[0].input_index, calls[0].behind_ms, counts, emitted


def _unpacked_together(keys: list[Any], value: tuple[Any, ...]) -> list[CallInFlight]:
    match value:
        case (_, list() as columns, bytes() as stored, int(), int(), list() | None, bytes() | None):
            records = unpack_batch(stored)
        case _:
            raise MalformedMessage(f"wanted records in flight, found {value!r:.60}")
    input_index, behind_ms, counts, emitted = value[3:]
    results: Iterable[Results | None] = repeat(None)
    lengths = {len(records), *(len(each) if isinstance(each, list) else -1 for each in columns)}
    if counts is not None:
        results = _results(counts, None if emitted is None else unpack_batch(emitted))
        lengths.add(len(counts))
    if not isinstance(records, list) or len(lengths) != 1 or len(records) > len(keys) or len(columns) != 7:
        raise MalformedMessage(f"wanted {len(records)} records in flight, found {value!r:.60}")
    calls = zip(keys, records, *columns, results, strict=False)
    return [
        CallInFlight(
            key, number, own, "record", record, time_ms, mark_ms, input_index, tries, began_ms, behind_ms, again_ms, out
        )
        for key, record, number, own, time_ms, mark_ms, tries, began_ms, again_ms, out in calls
    ]


def _results(counts: list[int], emitted: AnyBatch | None) -> Iterator[Results]:
    """Raises MalformedMessage."""
    ends = list(accumulate(counts))
    if (ends[-1] if ends else 0) != (0 if emitted is None else len(emitted)):
        raise MalformedMessage(f"wanted {ends[-1:]} results of records in flight, found {emitted!r:.60}")
    for count, end in zip(counts, ends, strict=True):
        yield [("", part_of(emitted, end - count, end))] if count and emitted is not None else []


def _unpacked(key: Any, value: Any) -> CallInFlight:
    match value:
        case (
            int(),
            str(),
            "record" | "timer" | "batch" | "waiting" as kind,
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
    if kind != "record":
        return batch
    if not isinstance(batch, list) or len(batch) != 1:
        raise MalformedMessage(f"wanted one record, found {batch!r:.60}")
    return batch[0]
