"""A list of mode "broadcast" that each call of `process` or `on_timer` changes is refused at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from understudy import InvalidOperator, KeyedOperator, OperatorListState, StreamEnvironment


class Rules(KeyedOperator):
    inputs = 2
    rules = OperatorListState(int, mode="broadcast")
    mine = OperatorListState(int)
    learns = False

    def process(self, record: Any, out: Any) -> None:
        """It reads them."""

    def process_2(self, record: Any, out: Any) -> None:
        self.rules.add(record)


class Adding(Rules):
    def process(self, record: Any, out: Any) -> None:
        self.rules.add(record)
        try:
            out.collect(min(each for each in self.rules.get() if each > record))
        except ValueError:
            out.collect(record)


class Clearing(Rules):
    def on_timer(self, timer: Any, out: Any) -> None:
        self.rules.clear()


class Inheriting(Clearing): ...


def put_in(kind: type[KeyedOperator]) -> None:
    numbers = StreamEnvironment().from_collection([1])
    numbers.key_by(abs).connect(numbers.broadcast()).process(kind)


@pytest.mark.parametrize(("kind", "hook"), [(Adding, "process"), (Clearing, "on_timer"), (Inheriting, "on_timer")])
def test_it_is_refused_with_its_line(kind: type[KeyedOperator], hook: str) -> None:
    with pytest.raises(
        InvalidOperator, match=rf"{kind.__name__}\.{hook} changes the list 'rules', which must be"
    ) as caught:
        put_in(kind)
    assert f"{__file__}:" in str(caught.value)
    assert "change it in process_2 of keyed.connect(rules.broadcast()), or keep what" in str(caught.value)


class OwnList(Rules):
    def process(self, record: Any, out: Any) -> None:
        self.mine.add(record)
        rules = self.rules.get()
        rules.clear()
        record.rules.clear()


class OtherName(Rules):
    def process(self, record: Any, out: Any) -> None:
        rules = self.rules
        rules.add(record)


class Helper(Rules):
    def process(self, record: Any, out: Any) -> None:
        self.keep(record)

    def keep(self, record: Any) -> None:
        self.rules.add(record)


class Later(Rules):
    def process(self, record: Any, out: Any) -> None:
        self.todo = lambda: self.rules.add(record)


class ForBoth(Rules):
    """Its records with a key are no rules."""

    def process(self, record: Any, out: Any) -> None:
        self.rules.add(record)

    process_2 = process


class Calling(Rules):
    def process(self, record: Any, out: Any) -> None:
        self.rules.add(record)

    def process_2(self, record: Any, out: Any) -> None:
        self.process(-record, out)


class MayLearn(Rules):
    def process(self, record: Any, out: Any) -> None:
        if self.learns:
            self.rules.add(record)


class OnTime(Rules):
    def on_timer(self, timer: Any, out: Any) -> None:
        _ = self.learns and self.rules.clear()


class FromRecords(Rules):
    def process(self, record: Any, out: Any) -> None:
        for each in self.new_rules(record):
            self.rules.add(each)

    def new_rules(self, record: Any) -> list[int]:
        return [record]


class FromNone(FromRecords):
    def new_rules(self, record: Any) -> list[int]:
        return []


class AtOnce(Rules):
    def process(self, record: Any, out: Any) -> None:
        [self.rules.add(each) for each in record.rules]


class WhileThereAre(Rules):
    def process(self, record: Any, out: Any) -> None:
        while record.rules:
            self.rules.add(record.rules.pop())


class Trying(Rules):
    def process(self, record: Any, out: Any) -> None:
        try:
            self.rules.add(record)
        except RuntimeError:
            out.collect(record)


class Suppressing(Rules):
    def process(self, record: Any, out: Any) -> None:
        with suppress(RuntimeError):
            self.rules.add(record)


class Otherwise(Adding):
    def process(self, record: Any, out: Any) -> None:
        """It reads them, too."""


IN_ANOTHER_WAY = [Rules, OwnList, OtherName, Helper, Later, ForBoth, Calling, Otherwise]
ONLY_SOMETIMES = [MayLearn, OnTime, FromRecords, FromNone, AtOnce, WhileThereAre, Trying, Suppressing]


@pytest.mark.parametrize("kind", [*IN_ANOTHER_WAY, *ONLY_SOMETIMES])
def test_what_may_be_right_is_not(kind: type[KeyedOperator]) -> None:
    put_in(kind)
