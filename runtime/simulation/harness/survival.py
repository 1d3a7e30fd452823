"""assert_survives_restore: an operator's output does not depend on where it was cut, crashed and restored.

The rule behind exactly-once: all that an operator remembers from one element to the next is in its declared state. For
each place where a barrier could come, a fresh attempt runs up to it, is snapshotted, takes one more element, as it may
in a job before it dies, and crashes; the next attempt is restored from the snapshot and takes the rest. What came out
before the barrier and after the restore must be what an uninterrupted run emits, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Protocol, TypedDict, Unpack

import cloudpickle
import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.operators.operator import Operator
from ....actors.operators.source import END
from ....messages.counted import counted
from ....messages.plain import refusal_of
from ...api.captured_changes import changes_of
from .attribute_watch import Held, classes_as_in_a_new_process, same_data, what_is_held, what_was_lost
from .harness import HarnessMisused, HarnessSnapshot, OperatorHarness
from .hosted_chain import Hosted, Keys

__all__ = ["assert_survives_restore"]

_SHOWN = 100


class HarnessOptions(TypedDict, total=False):
    """Parameters of an OperatorHarness beside its operator."""

    key_by: Keys | None
    key_by_2: Keys | None
    broadcast_2: bool
    schemas: Sequence[pa.Schema | None]
    subtask_index: int
    parallelism: int
    max_parallelism: int
    state_backend: str
    resources: dict[str, Any] | None
    job_id: str


def assert_survives_restore(
    operator: Hosted,
    batches: Sequence[Batch | tuple[int, Batch]] | None = None,
    *,
    timestamps: Sequence[Sequence[int] | None] | None = None,
    ordered: bool = True,
    max_polls: int = 100,
    **options: Unpack[HarnessOptions],
) -> None:
    """Raises AssertionError that says where the outputs part, and what was probably lost.

    `batches`: what arrives, one element each; a tuple (1, batch) is for the second input. The end of the data is one
    more element. `timestamps`: for each batch the event times of its records, in ms, or None; a watermark just below
    the least of those that are still to come is sent before each. A source gets no batches and is polled instead, to
    its end or `max_polls` times. `ordered` False: the records may come in another order, as where an operator goes
    through all of its keys at the end.

    For n elements the operator takes some n * n of them. An output of nothing cannot be compared; what a sink has
    committed is looked at with an OperatorHarness.
    """
    plan: _Plan = _Polls(max_polls) if batches is None else _Batches(batches, timestamps)

    def start() -> OperatorHarness:
        return OperatorHarness(operator, **options)

    with start() as reference, classes_as_in_a_new_process(reference.operators) as restart:
        name = type(reference.operator).__name__
        expected = plan.uninterrupted(reference)
        if not any(expected):
            raise HarnessMisused(
                f"{name} emitted nothing for these elements, so there is nothing to compare; of a sink, look at what "
                "it has committed, with snapshot, complete, crash and restored of an OperatorHarness"
            )
        compare = _Comparison(plan, expected, ordered)
        restart()
        with start() as second:
            found = _flat(plan.uninterrupted(second))
            if story := compare.difference(0, found):
                raise AssertionError(
                    f"{name} emits something else each time it runs, without any restore.\n{story}\n"
                    f"{_why_it_differs(reference.operators)}"
                )
        for cut in range(len(expected) + 1):
            restart()
            with start() as attempt:
                _Trial(plan, compare, cut, restart).run(attempt, name)


class _Plan(Protocol):
    """What arrives, by element."""

    def uninterrupted(self, harness: OperatorHarness) -> list[list[Any]]:
        """Feed everything; what came out, element by element."""
        ...

    def feed(self, harness: OperatorHarness, element: int) -> None: ...

    def rest(self, harness: OperatorHarness, cut: int, wanted: int) -> list[Any]:
        """Feed what comes after the cut; what came out, of which `wanted` records are expected."""
        ...

    def told(self, element: int) -> str:
        """For error texts."""
        ...


class _Batches:
    """Batches, and the end. Feeds are copies, so an operator that changes its records is not compared with itself."""

    def __init__(
        self, batches: Sequence[Batch | tuple[int, Batch]], timestamps: Sequence[Sequence[int] | None] | None
    ) -> None:
        if timestamps is not None and len(timestamps) != len(batches):
            raise HarnessMisused(
                f"timestamps: wanted a list for each of {len(batches)} batches, found {len(timestamps)} of them"
            )
        for index, times in enumerate(timestamps or ()):
            if isinstance(times, int | float):
                raise HarnessMisused(
                    f"timestamps: wanted a list for each batch, with the time of each of its records, as "
                    f"[[0, 10], [20]], or None; found {times!r} for batch {index + 1}"
                )
        self._elements = [_element(index, each) for index, each in enumerate(batches)]
        self._times = [None] * len(batches) if timestamps is None else list(timestamps)
        to_come = list(accumulate(reversed([min(times) if times else None for times in self._times]), _least))
        self._reached = [None if each is None else each - 1 for each in reversed(to_come)]
        """How far event time is before each batch."""

    def uninterrupted(self, harness: OperatorHarness) -> list[list[Any]]:
        outputs = []
        for element in range(len(self._elements) + 1):
            self.feed(harness, element)
            outputs.append(harness.take_output())
        return outputs

    def feed(self, harness: OperatorHarness, element: int) -> None:
        if element == len(self._elements):
            harness.end()
        else:
            input_index, batch = cloudpickle.loads(self._elements[element])
            if (reached_ms := self._reached[element]) is not None:
                for each in range(harness.operators[0].inputs):
                    harness.watermark(reached_ms, each)
            harness.process(batch, input_index, timestamps=self._times[element])

    def rest(self, harness: OperatorHarness, cut: int, wanted: int) -> list[Any]:
        for element in range(cut, len(self._elements) + 1):
            self.feed(harness, element)
        return harness.take_output()

    def told(self, element: int) -> str:
        if element == len(self._elements):
            return "the end of the data"
        input_index, batch = cloudpickle.loads(self._elements[element])
        where = " on the second input" if input_index else ""
        return f"element {element + 1} of {len(self._elements)}{where}, {_shown(batch)}"


class _Polls:
    """The polls of a source. After a restore its batches may be cut otherwise, so only the records count."""

    def __init__(self, max_polls: int) -> None:
        self._max_polls = max_polls
        self._has_ended = False

    def uninterrupted(self, harness: OperatorHarness) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        self._has_ended = False
        while len(outputs) < self._max_polls and not self._has_ended:
            polled = harness.poll(wait=True)
            if polled is None:
                break
            self._has_ended = polled is END
            outputs.append(harness.take_output())
        return outputs

    def feed(self, harness: OperatorHarness, element: int) -> None:
        harness.poll(wait=True)

    def rest(self, harness: OperatorHarness, cut: int, wanted: int) -> list[Any]:
        records: list[Any] = []
        while len(records) < wanted + self._has_ended:
            polled = harness.poll(wait=True)
            records += harness.take_output()
            if polled is None or polled is END:
                break
        return records if self._has_ended else records[:wanted]

    def told(self, element: int) -> str:
        return f"poll {element + 1}"


class _Comparison:
    """What the uninterrupted run emitted, against what another one did."""

    def __init__(self, plan: _Plan, expected: list[list[Any]], ordered: bool) -> None:
        self._plan, self.expected, self._ordered = plan, expected, ordered

    def difference(self, start: int, found: Sequence[Any]) -> str:
        """`found`: the output from element `start` on. Empty when it is the same."""
        wanted = _flat(self.expected[start:])
        if not self._ordered:
            return _lost_and_added(wanted, found)
        parted = _first_difference(found, wanted)
        if parted is None:
            return ""
        ends = accumulate(map(len, self.expected[start:]))
        last = len(self.expected) - 1
        made_by = next((element for element, end in enumerate(ends, start) if parted < end), last)
        number = len(_flat(self.expected[:start])) + parted + 1
        return (
            f"  The first difference is output record {number}, made of {self._plan.told(made_by)}:\n"
            f"    uninterrupted: {_at(wanted, parted)}\n"
            f"    this time:     {_at(found, parted)}"
        )


class _Trial:
    """One cut: the barrier comes before element number `cut`."""

    def __init__(self, plan: _Plan, compare: _Comparison, cut: int, restart: Callable[[], None]) -> None:
        self._plan, self._compare, self._cut, self._restart = plan, compare, cut, restart
        self._where = f"after {plan.told(cut - 1)}" if cut else "before the first element"
        self._lost: list[str] = []

    def run(self, first: OperatorHarness, name: str) -> None:
        """Raises AssertionError when the restored attempt does not go on as the uninterrupted one did."""
        opened = what_is_held(first.operators)
        for element in range(self._cut):
            self._plan.feed(first, element)
        with self._telling(f"{name} raised at the barrier"):
            at_barrier, snapshot = self._snapshot(first)
        first.crash()
        self._restart()
        with self._telling(f"{name} raised when it was restored"), first.restored(snapshot) as second:
            self._lost = what_was_lost(opened, at_barrier, what_is_held(second.operators))
            found = self._plan.rest(second, self._cut, sum(map(len, self._compare.expected[self._cut :])))
        if story := self._compare.difference(self._cut, found):
            raise AssertionError(
                f"{name} emits something else when it is restored from a snapshot taken {self._where}.\n"
                f"{story}\n{self._likely_cause()}"
            )

    def _snapshot(self, first: OperatorHarness) -> tuple[Held, HarnessSnapshot]:
        """It is written late: what the element after the barrier does must not show in it."""
        write = first.begin_snapshot()
        at_barrier = what_is_held(first.operators)
        if self._cut < len(self._compare.expected):
            self._plan.feed(first, self._cut)
        return at_barrier, write()

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            cause = error.__cause__ or error
            story = f"{what} {self._where}: {type(cause).__name__}: {cause}"
            raise AssertionError(f"{story}\n{self._likely_cause()}" if self._lost else story) from error

    def _likely_cause(self) -> str:
        if not self._lost:
            return (
                "  No attribute is at fault. Look for globals of a module, for a value that is changed after it was\n"
                "  put into state or taken out of it, and for the order in which keys are gone through (ordered=False)."
            )
        lines = "\n".join(f"    {line}" for line in self._lost)
        return (
            f"  The likely cause is what changed and is in no snapshot:\n{lines}\n"
            "  Declare it as state, as in `total = ValueState(int, default=0)` for a KeyedOperator; or put it into an\n"
            "  OperatorListState in on_checkpoint, and take it out of there in open."
        )


def _why_it_differs(operators: Sequence[Operator]) -> str:
    changes = dict.fromkeys(change for operator in operators for change in changes_of(operator))
    if not changes:
        return (
            "  Look for random numbers, the time of day, ids that are made for each run, and variables of a module\n"
            "  that it changes: take them from the record, from self.context.clock, or from state."
        )
    lines = "\n".join(f"    {each.function} changes {each.what} ({each.file}:{each.line})" for each in changes)
    return f"  The likely cause is what the next attempt finds changed; keep it in state:\n{lines}"


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _element(index: int, given: Any) -> bytes:
    """(input index, batch), pickled; refuses what is no batch before anything has run."""
    is_pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], list | pa.RecordBatch)
    input_index, batch = given if is_pair else (0, given)
    if not isinstance(batch, list | pa.RecordBatch):
        raise HarnessMisused(
            f"batches[{index}]: wanted a batch, that is a list of records or a pyarrow.RecordBatch, or a tuple "
            f"(input index, batch); found {given!r:.80}"
        )
    data: bytes = cloudpickle.dumps((input_index, batch))
    return data


def _flat(outputs: Sequence[Sequence[Any]]) -> list[Any]:
    return [record for output in outputs for record in output]


def _first_difference(found: Sequence[Any], wanted: Sequence[Any]) -> int | None:
    for index, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if not _same(one, other):
            return index
    return None if len(found) == len(wanted) else min(len(found), len(wanted))


def _lost_and_added(wanted: Sequence[Any], found: Sequence[Any]) -> str:
    """Compared in any order; empty when they are the same."""
    left, lost = list(found), []
    for record in wanted:
        index = next((index for index, other in enumerate(left) if _same(record, other)), None)
        if index is None:
            lost.append(record)
        else:
            del left[index]
    lines = [f"    {what}: {_shown(records)}" for what, records in (("lost", lost), ("too many", left)) if records]
    return "\n".join(["  The output is not the same, in whatever order:", *lines]) if lines else ""


def _same(one: Any, other: Any) -> bool:
    """Equal, or, where that is no answer (NaN, arrays), holding the same."""
    try:
        if one == other:
            return True
    except Exception:  # noqa: BLE001 - a record may raise anything when it is compared
        pass
    try:
        held, its = cloudpickle.dumps(one), cloudpickle.dumps(other)
    except Exception as error:  # noqa: BLE001 - an object may raise anything when it is pickled
        why = refusal_of(one) or f"{type(error).__name__}: {error}"
        raise AssertionError(f"a record that it emits cannot be compared, nor sent to another task: {why}") from None
    return same_data(held, its)


def _at(records: Sequence[Any], index: int) -> str:
    return _shown(records[index]) if index < len(records) else f"nothing more after {counted(len(records), 'record')}"


def _shown(value: Any) -> str:
    text = repr(value.to_pylist() if isinstance(value, pa.RecordBatch) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
