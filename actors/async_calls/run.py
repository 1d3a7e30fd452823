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
from functools import partial
from itertools import islice
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import numpy as np

from ...state.backends.backend import NO_NAMESPACE
from ...state.backends.private_copy import IMMUTABLE, private_copy
from ...state.backends.shared_backend import SharedBackend, SharedState
from ...state.backends.unit_of_work import CURRENT
from ...state.kinds.declared_states import declared_states
from ...state.kinds.descriptors import ValueState
from ..flow.elements import NO_WATERMARK, TimedBatch
from ..operators.collector import OWN_REFERENCES, Collector
from ..operators.operator import Operator
from .call import CHANGEABLE, Call
from .frozen_calls import CallInFlight, Results
from .kept_outs import KeptOut

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


_NONE: Final = object()
"""In the place of a call. None is the current one of other threads."""


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
        self.call: object = _NONE
        self.found: Any = None
        """What `read` has given for it, before it began."""
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
        self.call = _NONE
        for name, state in self._states.items():
            setattr(self._operator, name, state)

    def enter_default(self) -> None:
        """Make the states those of the default namespace."""
        for state in self._states.values():
            state.enter_default()

    @property
    def read(self) -> Callable[[], Any]:
        """Gives what the current key holds."""
        held = self._held
        return held[0] if len(held) == 1 else lambda: [each() for each in held]

    def before(self) -> dict[tuple[Any, Any], Any]:
        """What was found, as a unit of work remembers it."""
        found = [self.found] if len(self._held) == 1 else self.found
        return {(state, NO_NAMESPACE): each for state, each in zip(self._states.values(), found, strict=True)}


class _PlainState:
    """Stands in the place of a SharedState during a run."""

    def __init__(self, states: PlainStates, shared: SharedState) -> None:
        self._states = states
        self._shared = shared
        plain, current = shared.inner, CURRENT.get
        plain_value, plain_update, plain_clear = plain.value, plain.update, plain.clear

        def value() -> Any:
            return plain_value() if states.call is current() else cast(Any, shared).value()

        def update(value: Any) -> None:
            (plain_update if states.call is current() else cast(Any, shared).update)(value)

        def clear() -> None:
            (plain_clear if states.call is current() else cast(Any, shared).clear)()

        self.value, self.update, self.clear = value, update, clear

    def set_namespace(self, namespace: Hashable) -> None:
        """From here on the record's state is used the usual way."""
        self._states.call = _NONE
        self._shared.set_namespace(namespace)


class CountsBegun(Protocol):
    """A loop."""

    @property
    def begun_so_far(self) -> int:
        """A number that grows with all that coroutines begin on it: tasks, timers, work for executors."""
        ...


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
        loop: CountsBegun,
        limit_ms: float | None,
        has_timers: bool,
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
        self._loop = loop
        self._has_timers = has_timers
        self._limit_ms = limit_ms
        """Of the call that ends it."""
        self.begun: list[Any] = []
        """What its records have begun and not awaited."""
        self.kept: list[KeptOut] = []
        """Collectors that code of its records still holds."""
        self._out = Collector()

    def go_on(self, refuse: Callable[[Any], BaseException]) -> tuple[Coroutine[Any, Any, Any], Any] | None:
        """Take some more records. Returns the coroutine that waits, of `stopped`, and what for; None: none does.
        `refuse` makes the error of one that has returned something.
        """
        with self._backend.lock, self._plain or nullcontext():
            taking = self._take_some(refuse)
            try:
                awaited = taking.send(None)
            except StopIteration:
                CURRENT.set(None)
                return None
            self._stop(cast(Call, CURRENT.get()))
            self.waits = True
            return taking, awaited

    async def _take_some(self, refuse: Callable[[Any], BaseException]) -> Any:
        """Awaits the coroutines of the records: driven from outside, each would cost an exception. With the first that
        waits it waits, and ends.
        """
        process, out, piece, plain, has_timers = self._process, self._out, self.piece, self._plain, self._has_timers
        results, current, prefix, new = self.results, CURRENT.set, self._prefix, object.__new__
        is_timed, loop, made = piece.times is not None, self._loop, self._loop.begun_so_far
        inner, read = self._backend.inner, plain.read if plain is not None and plain.has_any else None
        number, start, end = self.number, len(results.records), 0
        for key, record, time_ms, watermark_ms in islice(self._left, LOCKED_RECORDS):
            call = new(Call)  # its `__init__` would cost as much again
            call.number, call.key, call.record, call.watermark, call.prefix = number, key, record, watermark_ms, prefix
            if is_timed:
                call.time_ms = out.time_ms = time_ms
            current(call)
            if plain is not None:
                inner.current_key, plain.call = key, call
                if read is not None:
                    plain.found = read()
            try:
                returned = await process(private_copy(record) if type(record) in CHANGEABLE else record, out)
            except BaseException as error:  # user code may call sys.exit; who takes the run decides
                if self.waits:
                    raise
                call.error = error
                return self._stop(call)
            if self.waits:
                return returned
            if returned is not None:
                call.error = refuse(returned)
                return self._stop(call)
            if call.lent is not None and (forgotten := self._backend.forgotten(call)) is not None:
                call.error = forgotten
                return self._stop(call)
            if plain is None or plain.call is not call or has_timers:  # it may have left something to commit
                self._commit(call)
            call.is_over = True
            if out._batches or out._sides:
                self._keep_others(call)
                start, end = len(results.records), 0
            elif len(out) != end:
                if is_timed:
                    results.times += [call.time_ms or 0] * (len(out) - end)
                end = len(out)
                results.ends.append((key, number, start + end))
            if made != (now := loop.begun_so_far):  # some of that may have it, and live on
                made = now
                self.begun += call.left_running()
                out, start, end = self._close_out(call), len(results.records), 0
            number += 1
        self._close_out(call)
        piece.taken += number - self.number
        self.number = number
        self.is_over = piece.taken == len(piece.batch) or number - self._first >= MOST_RECORDS
        return None

    def _commit(self, call: Call) -> None:
        if call.timers is not None or call.before is not None:
            self._backend.commit(call)
        if self._plain is not None:
            self._plain.enter_default()

    def _keep(self) -> None:
        """Take the records out of the collector that calls have left there which are done: they stand first."""
        records, ends = self.results.records, self.results.ends
        count = ends[-1][2] - len(records) if ends else 0
        if count > 0:
            records += self._out.first_taken(count)

    def _close_out(self, call: Call) -> Collector:
        """Behind this call: what it has left behind, or one before it, emits nothing any more. Returns the next one."""
        self._keep()
        out, self._out = self._out, Collector()
        misuse = partial(self._backend.refuse, call, "out", call.begun)
        out.close_kept(misuse)
        if getrefcount(out) > OWN_REFERENCES:
            self.kept.append((out, misuse))
        return self._out

    def _keep_others(self, call: Call) -> None:
        """It has emitted not only records."""
        self._keep()
        emitted = self._out.all_taken()
        if emitted:
            self.results.others.append((len(self.results.records), call.key, call.number, emitted))

    def _stop(self, call: Call) -> None:
        """It waits, or has failed."""
        plain, piece = self._plain, self.piece
        if plain is not None and plain.has_any:
            plain.call = _NONE
            self._backend.remember(call, (call.before or {}) | plain.before())
        self._keep()
        call.limit_ms, call.tries = self._limit_ms, 1
        call.position = piece.position_of(piece.taken + call.number - self.number)
        call.size, call.input_index, call.out = piece.size, piece.input_index, self._out
        piece.taken += call.number + 1 - self.number
        self.number = call.number + 1
        self.stopped, self.is_over = call, True

    def frozen(self, *, keyed: bool, began_wall_ms: int) -> Iterator[CallInFlight]:
        """The call that ended it; with the lock in hand."""
        if (call := self.stopped) is not None:
            own_key, identity = call.key if keyed else call.number, call.idempotency_key
            where = call.number, identity, call.kind, call.record, call.time_ms, call.watermark, call.input_index
            yield CallInFlight(own_key, *where, 0, began_wall_ms, NO_WATERMARK, 0, None)
