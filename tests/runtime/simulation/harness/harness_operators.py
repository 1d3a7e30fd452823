"""The operators and the source that the tests of the OperatorHarness host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from understudy import (
    Collector,
    FoldingState,
    KeyedOperator,
    ListState,
    MapState,
    Operator,
    OperatorListState,
    ReducingState,
    Source,
    ValueState,
    message,
)
from understudy.actors.operators.source import END

LETTERS = [[("a", 1), ("b", 2)], [("a", 3)], [("b", 4), ("c", 5)]]


@message
class TotalSoFar:
    """How much has this key had?"""


class RunningTotal(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + record[1])
        out.collect((self.key, self.total.value()))

    def on_receive(self, message: Any) -> Any:
        match message:
            case TotalSoFar():
                return self.total.value()
            case "cheat":
                self.total.update(0)
            case "unsendable":
                return object()


class EveryKind(KeyedOperator):
    """All kinds of keyed state at once."""

    seen = ListState(int)
    named = MapState(str, int)
    most = ReducingState(int, max)
    text = FoldingState(str, "", lambda text, number: f"{text}{number}")

    def process(self, record: Any, out: Collector) -> None:
        key, number = record
        self.seen.add(number)
        self.named.put(f"n{number % 2}", number)
        self.most.add(number)
        self.text.add(number)
        out.collect((key, self.seen.get(), sorted(self.named.items()), self.most.get(), self.text.get()))


class Forgetful(KeyedOperator):
    """Keeps its totals where no snapshot finds them."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, record: Any, out: Collector) -> None:
        self.totals[self.key] = self.totals.get(self.key, 0) + record[1]
        out.collect((self.key, self.totals[self.key]))


class Buffering(Operator):
    """Pairs records up: what waits for its partner goes into state at the barrier."""

    waiting = OperatorListState(int)

    def open(self) -> None:
        self.left = self.waiting.get()

    def process_batch(self, batch: list[int], out: Collector) -> None:
        self.left += batch
        while len(self.left) >= 2:
            out.collect((self.left.pop(0), self.left.pop(0)))

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.waiting.update(self.left)

    def on_end(self, out: Collector) -> None:
        for number in self.left:
            out.collect((number, None))


class Join(KeyedOperator):
    """What the right side said last, for each record of the left side."""

    inputs = 2
    said = ValueState(str, default="nothing")

    def process(self, record: Any, out: Collector) -> None:
        out.collect((*record, self.said.value()))

    def process_2(self, record: Any, out: Collector) -> None:
        self.said.update(record["says"])


class Countdown(Source):
    """Numbers, two at a time, with a second between batches."""

    def __init__(self, start: int) -> None:
        self.left = start
        self.due_ms = 0.0

    def poll(self) -> Any:
        if not self.left:
            return END
        if self.context.clock.now_ms() < self.due_ms:
            return None
        self.due_ms = self.context.clock.now_ms() + 1000
        batch = list(range(self.left, max(self.left - 2, 0), -1))
        self.left -= len(batch)
        return batch

    def poll_delay_ms(self) -> float:
        return self.due_ms - self.context.clock.now_ms()

    def offset(self) -> int:
        return self.left

    def seek(self, offset: int) -> None:
        self.left = offset


class Lifecycle(Operator):
    """Writes down in a file what is done to it."""

    def __init__(self, log: Path) -> None:
        self.log = str(log)

    def note(self, *what: Any) -> None:
        with open(self.log, "a") as file:
            print(*what, file=file)

    def open(self) -> None:
        self.note("open", self.context.attempt_number, self.context.restored)

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.note("process", batch)
        if "poison" in batch:
            raise ValueError("poison")

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.note("checkpoint", checkpoint_id)

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.note("complete", checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.note("aborted", checkpoint_id)

    def on_end(self, out: Collector) -> None:
        self.note("end")

    def close(self) -> None:
        self.note("close")
