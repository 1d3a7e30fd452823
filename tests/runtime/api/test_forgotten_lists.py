"""A list that `get` of a list state gave, changed and dropped at once, is refused where the stream is built."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import InvalidOperator, KeyedOperator, ListState, Operator, OperatorListState, StreamEnvironment


class Appending(KeyedOperator):
    items = ListState(int)

    def process(self, record: Any, out: Any) -> None:
        self.items.get().append(record)


class Clearing(KeyedOperator):
    items = ListState(int)

    async def process(self, record: Any, out: Any) -> None:
        self.items.get().clear()


class AppendingInside(KeyedOperator):
    items = ListState(int)

    def process(self, record: Any, out: Any) -> None:
        def keep() -> None:
            self.items.get().append(record)

        keep()


class PuttingBack(KeyedOperator):
    items = ListState(int)

    def process(self, record: Any, out: Any) -> None:
        items = self.items.get()
        items.append(record)
        self.items.update(items)
        out.collect(self.items.get().pop())
        {"items": [1]}.get("items", []).append(2)


@pytest.mark.parametrize(
    ("kind", "instead"), [(Appending, "add(item)"), (AppendingInside, "add(item)"), (Clearing, "update(items)")]
)
def test_it_is_refused_with_its_line(kind: type[KeyedOperator], instead: str) -> None:
    stream = StreamEnvironment().from_collection([1]).key_by(lambda record: record)
    with pytest.raises(InvalidOperator, match=r"self\.items\.get\(\)\.(append|clear)") as caught:
        stream.process(kind)
    assert f"{__file__}:" in str(caught.value)
    assert f"Write self.items.{instead}" in str(caught.value)


def test_a_list_that_is_put_back_or_only_read_is_not() -> None:
    StreamEnvironment().from_collection([1]).key_by(lambda record: record).process(PuttingBack)


class Rules(KeyedOperator):
    inputs = 2
    items = OperatorListState(int, mode="broadcast")

    def process(self, record: Any, out: Any) -> None:
        """It reads them."""

    def process_2(self, record: Any, out: Any) -> None:
        self.items.get().append(record)


class Seen(Operator):
    items = OperatorListState(int)

    def process_batch(self, batch: Any, out: Any) -> None:
        self.items.get().extend(batch)


def test_so_is_that_of_an_operator_list() -> None:
    numbers = StreamEnvironment().from_collection([1])
    with pytest.raises(InvalidOperator, match=r"get\(\) of an OperatorListState gives .*Write self.items.add\(item\)"):
        numbers.key_by(abs).connect(numbers.broadcast()).process(Rules)
    with pytest.raises(InvalidOperator, match=r"get\(\) of an OperatorListState .*Write self.items.add_all\(items\)"):
        numbers.process(Seen)
