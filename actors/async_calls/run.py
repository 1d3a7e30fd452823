"""Run: records of a batch, one after the other, as long as no coroutine waits.

Where no record is in flight, nothing has to be kept in order: so records are taken as they come, and what they emit is
kept together, which costs less than half of a call for each. The first coroutine that waits, or fails, ends the
run: it goes on as a call, and calls are made of the records behind it.

It goes on, on the event loop's thread, with the lock of the state in hand: a snapshot, which takes the lock, finds each
record as done or as not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...state.backends.backend import NO_NAMESPACE
from ...state.backends.private_copy import IMMUTABLE
from ...state.backends.shared_backend import SharedBackend, SharedState
from ...state.backends.unit_of_work import CURRENT
from ...state.kinds.declared_states import declared_states
from ...state.kinds.descriptors import ValueState
from ..flow.elements import NO_WATERMARK, TimedBatch
from ..operators.collector import Collector
from ..operators.operator import Operator
from .call import Call, own_record
from .frozen_calls import CallInFlight, Results

if TYPE_CHECKING:
    from .backlog import Piece

LOCKED_RECORDS: Final = 256
"""This many are taken with the lock in hand: a snapshot may have to wait for them."""
MOST_RECORDS: Final = 2048
"""A run ends after about this many: until then a snapshot has to hold all that it has emitted."""


class RunResults:
    """What the records of runs have emitted, in order, until it leaves."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.times: list[int] = []
        """Of the records, on a stream with event time."""
        self.ends: list[tuple[Any, int, int]] = []
        """For each record of the input that emitted something: key, number, and how many records there were then."""
        self.others: list[tuple[int, Any, int, Results]] = []
        """Emitted as batches, or to side outputs: the number of records before it, key and number of the record of the
        input, and the batches.
        """

    def __bool__(self) -> bool:
        return bool(self.records or self.others)

    def take_over(self, other: RunResults) -> None:
        """Put all that the other one holds behind what is here."""
        if not self:
            self.records, self.times, self.ends, self.others = other.records, other.times, other.ends, other.others
            return
        behind = len(self.records)
        self.records += other.records
        self.times += other.times
        self.ends += [(key, number, end + behind) for key, number, end in other.ends]
        self.others += [(at + behind, *rest) for at, *rest in other.others]

    def move_to(self, out: Collector) -> None:
        """Emit all, and forget it."""
        start = 0
        for at, _, _, results in self.others:
            self._move(out, start, at)
            for tag, element in results:
                out.put(tag, element)
            start = at
        self._move(out, start, len(self.records))
        self.records, self.times, self.ends, self.others = [], [], [], []

    def _move(self, out: Collector, start: int, end: int) -> None:
        if start < end:
            out.add_stamped(self.records[start:end], self.times[start:end])

    def copy(self) -> RunResults:
        copied = RunResults()
        copied.records, copied.times, copied.ends = self.records[:], self.times[:], self.ends[:]
        copied.others = self.others[:]
        return copied

    def frozen(self, *, keyed: bool) -> Iterator[CallInFlight]:
        """As calls that are done, one for each record of the input that emitted something."""
        records, times = self.records, self.times
        start = 0
        for key, number, end in self.ends:
            part: Any = records[start:end]
            if times:
                part = TimedBatch(part, np.array(times[start:end], np.int64))
            yield _done(key if keyed else number, number, [("", part)])
            start = end
        for _, key, number, results in self.others:
            yield _done(key if keyed else number, number, results)


def _done(key: Any, number: int, results: Results) -> CallInFlight:
    return CallInFlight(key, number, "", "record", None, None, 0, 0, 0, 0, NO_WATERMARK, 0, results)


class PlainStates:
    """The states of an operator whose values nobody can change in place: in a run they are used without a detour, as
    it is cheap to remember their values before a record. None where it has others, or ones that expire.

    `call` is the one that may use them so: while its record is taken in a run, and has not waited. A method that was
    looked up before, and is called after that, goes the usual way.
    """

    def __init__(self, operator: Operator, states: dict[str, SharedState]) -> None:
        self._operator = operator
        self._states = states
        self._plain = {name: _PlainState(self, state) for name, state in states.items()}
        self.has_any = bool(states)
        self.call: Call | None = None
        self._held = [state.inner.held for state in states.values()]

    @classmethod
    def of(cls, operator: Operator) -> PlainStates | None:
        states: dict[str, SharedState] = {}
        for name, declared in declared_states(type(operator)).items():
            state = getattr(operator, name)
            if isinstance(state, SharedState):
                if not isinstance(declared, ValueState) or declared.ttl is not None or declared.type not in IMMUTABLE:
                    return None
                states[name] = state
        return cls(operator, states)

    def __enter__(self) -> None:
        self.enter_default()
        for name, state in self._plain.items():
            setattr(self._operator, name, state)

    def __exit__(self, *_: object) -> None:
        self.call = None
        for name, state in self._states.items():
            setattr(self._operator, name, state)

    def enter_default(self) -> None:
        """Make the states those of the default namespace."""
        for state in self._states.values():
            state.enter_default()

    @property
    def images(self) -> Callable[[], Any]:
        """Gives what the current key holds."""
        held = self._held
        return held[0] if len(held) == 1 else lambda: [each() for each in held]

    def before(self, images: Any) -> dict[tuple[Any, Any], Any]:
        """The same, as a unit of work remembers it."""
        held = [images] if len(self._held) == 1 else images
        return {(state, NO_NAMESPACE): each for state, each in zip(self._states.values(), held, strict=True)}


class _PlainState:
    """Stands in the place of a SharedState during a run."""

    def __init__(self, states: PlainStates, shared: SharedState) -> None:
        self._states = states
        self._shared = shared
        for name in ("value", "update", "clear"):
            setattr(self, name, _while_plain(states, getattr(shared.inner, name), getattr(shared, name)))

    def set_namespace(self, namespace: Hashable) -> None:
        """From here on the record's state is used the usual way."""
        self._states.call = None
        self._shared.set_namespace(namespace)


def _while_plain(states: PlainStates, plain: Callable[..., Any], usual: Callable[..., Any]) -> Callable[..., Any]:
    current = CURRENT.get

    def use(*args: Any, **named: Any) -> Any:
        call = states.call
        return (plain if call is not None and call is current() else usual)(*args, **named)

    return use


class Run:
    """One run. Made on the task's thread; then the loop's, until it is over."""

    def __init__(
        self,
        piece: Piece,
        first_number: int,
        backend: SharedBackend,
        process: Callable[..., Any],
        prefix: str,
        plain: PlainStates | None,
        tasks_made: Callable[[], int],
        limit_ms: float | None,
    ) -> None:
        self.piece = piece
        self.number = self._first = first_number
        """Of the next record."""
        self.results = RunResults()
        self.is_over = False
        self.stopped: Call | None = None
        """The call that ended it: it waits, or has failed."""
        self.waits = False
        """Whether that one waits: then its end comes by itself, and it may have come before this is looked at."""
        self._left = piece.each()
        self._backend = backend
        self._process = process
        self._prefix = prefix
        """Of idempotency keys."""
        self._plain = plain
        self._tasks_made = tasks_made
        self._limit_ms = limit_ms
        """Of the call that ends it."""
        self._out = Collector()

    def go_on(self, refuse: Callable[[Any], BaseException]) -> tuple[Coroutine[Any, Any, Any], Any] | None:
        """Take some more records. Returns the coroutine that waits, of `stopped`, and what for; None: none does.
        `refuse` makes the error of one that has returned something.
        """
        with self._backend.lock, self._plain or nullcontext():
            waiting = self._take_some(refuse)
            if waiting is None:
                CURRENT.set(None)
            return waiting

    def _take_some(self, refuse: Callable[[Any], BaseException]) -> tuple[Coroutine[Any, Any, Any], Any] | None:
        process, out, piece, backend, plain = self._process, self._out, self.piece, self._backend, self._plain
        kept, ends, current, prefix = self.results.records, self.results.ends, CURRENT.set, self._prefix
        is_timed, tasks_made, made = piece.times is not None, self._tasks_made, self._tasks_made()
        inner, images_of = backend.inner, plain.images if plain is not None and plain.has_any else None
        number = self.number
        images: Any = []
        for key, record, time_ms, watermark_ms in islice(self._left, LOCKED_RECORDS):
            call = Call(number, key, record, watermark_ms)
            call.prefix = prefix
            if is_timed:
                call.time_ms = out.time_ms = time_ms
            current(call)
            if plain is not None and images_of is not None:
                inner.current_key, plain.call = key, call
                images = images_of()
            try:
                coroutine = process(own_record(record), out)
                awaited = coroutine.send(None)
            except StopIteration as end:
                if end.value is None:
                    if call.timers is not None or call.before is not None:
                        backend.commit(call)
                    call.is_over = True
                    if images_of is not None and plain is not None and plain.call is None:
                        plain.enter_default()
                    if out._batches or out._sides:
                        self._keep_others(call, out)
                    elif out:
                        kept += out
                        if is_timed:
                            self.results.times += [call.time_ms or 0] * len(out)
                        ends.append((key, number, len(kept)))
                        out.clear()
                    if made != tasks_made():  # one of them may have it, and live on
                        made = tasks_made()
                        out.close()
                        out = self._out = Collector()
                    number += 1
                    continue
                call.error = refuse(end.value)
            except BaseException as error:  # noqa: BLE001 - user code may call sys.exit; who takes the run decides
                call.error = error
            if plain is not None and images_of is not None:
                plain.call = None
                backend.remember(call, (call.before or {}) | plain.before(images))
            self._stop(call, number + 1)
            self.waits = call.error is None
            return (coroutine, awaited) if self.waits else None
        piece.taken += number - self.number
        self.number = number
        self.is_over = piece.taken == len(piece.batch) or number - self._first >= MOST_RECORDS
        return None

    def _keep_others(self, call: Call, out: Collector) -> None:
        results = out.all_taken()
        if results:
            self.results.others.append((len(self.results.records), call.key, call.number, results))

    def _stop(self, call: Call, next_number: int) -> None:
        piece = self.piece
        call.limit_ms, call.tries = self._limit_ms, 1
        call.position = piece.position_of(piece.taken + call.number - self.number)
        call.size, call.input_index, call.out = piece.size, piece.input_index, self._out
        piece.taken += next_number - self.number
        self.number = next_number
        self.stopped, self.is_over = call, True

    def frozen(self, *, keyed: bool, began_wall_ms: int) -> Iterator[CallInFlight]:
        """The call that ended it; with the lock in hand."""
        if (call := self.stopped) is not None:
            own_key, identity = call.key if keyed else call.number, call.idempotency_key
            where = call.number, identity, call.kind, call.record, call.time_ms, call.watermark, call.input_index
            yield CallInFlight(own_key, *where, 0, began_wall_ms, NO_WATERMARK, 0, None)
