"""No key, no guess: an operator without a key says so when it is asked for one, and `self.keys()` goes through all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import Collector, KeyedOperator, ListState, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.messages import CheckpointId
from understudy.state.errors import HasCurrentKey, NoCurrentKey

CHECKPOINT = CheckpointId(1)

HOOKS: dict[str, Callable[[OperatorChain], Any]] = {
    "open": OperatorChain.open,
    "on_end": OperatorChain.end,
    "on_idle": OperatorChain.idle,
    "before_barrier": lambda chain: chain.checkpoint(CHECKPOINT),
    "on_checkpoint": lambda chain: chain.checkpoint(CHECKPOINT),
    "on_checkpoint_complete": lambda chain: chain.checkpoint_complete(CHECKPOINT),
    "on_checkpoint_aborted": lambda chain: chain.checkpoint_aborted(CHECKPOINT),
    "close": lambda chain: _raise_first(chain.close()),
}

USES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "key": ("self.key", lambda operator: operator.key),
    "read": ("keyed state 'worst'", lambda operator: operator.worst.value()),
    "update": ("keyed state 'worst'", lambda operator: operator.worst.update(1)),
    "clear": ("keyed state 'worst'", lambda operator: operator.worst.clear()),
    "add": ("keyed state 'seen'", lambda operator: operator.seen.add(1)),
}

Use = Callable[[Any], Any]


def _raise_first(errors: list[UserCodeError]) -> None:
    for error in errors:
        raise error


class Worst(KeyedOperator):
    worst = ValueState(int, default=0)
    seen = ListState(int)
    used: Any = None

    def process(self, record: Any, out: Collector) -> None:
        self.worst.update(max(self.worst.value(), record[1]))


def chain_with(opened: Callable[..., Any], **hooks: Use) -> OperatorChain:
    """An operator with these methods, of which `self.used` keeps what they return, after some records."""

    def method(use: Use) -> Callable[..., None]:
        def hook(self: Any, *_: Any) -> None:
            if self.context.attempt_number == 7:  # it has been opened for the test
                self.used = use(self)

        return hook

    kind = type("Hooked", (Worst,), {name: method(use) for name, use in hooks.items()})
    operator = opened(kind(), 0)
    chain = OperatorChain([operator], lambda batch: None)
    chain.process([("JFK", 3), ("LGA", 5), ("JFK", 4)])
    operator.context.attempt_number = 7
    return chain


@pytest.mark.parametrize("what", USES)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_without_a_key_says_so(opened: Callable[..., Any], hook: str, what: str) -> None:
    used, use = USES[what]
    with pytest.raises(UserCodeError) as caught:
        HOOKS[hook](chain_with(opened, **{hook: use}))
    cause = caught.value.__cause__
    assert isinstance(cause, NoCurrentKey)
    assert str(cause) == (
        f"operator 'the-operator': {used} was used in `{hook}`, which is called without a key: "
        "only `process` has the key of a record; go through all keys with `for key in self.keys():`"
    )
    assert cause.__cause__ is None, "nothing stands behind it that says less"
    assert cause.__traceback__ is not None


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_may_go_through_all_keys(opened: Callable[..., Any], hook: str) -> None:
    chain = chain_with(opened, **{hook: lambda self: [(key, self.key, self.worst.value()) for key in self.keys()]})
    HOOKS[hook](chain)
    assert chain.operators[0].used == [("JFK", "JFK", 4), ("LGA", "LGA", 5)]  # type: ignore[attr-defined]
    assert not hasattr(chain.operators[0], "key")


def test_an_operator_that_never_had_a_record_has_no_keys(opened: Callable[..., Any]) -> None:
    assert list(opened(Worst(), 0).keys()) == []


def test_a_key_of_several_states_comes_once_and_one_that_holds_nothing_does_not(opened: Callable[..., Any]) -> None:
    class Both(Worst):
        def process(self, record: Any, out: Collector) -> None:
            key, number = record
            (self.seen.add if number else self.worst.update)(number)
            if key == "gone":
                self.worst.clear()

    operator = opened(Both(), 0)
    operator.process_batch([("b", 1), ("a", 0), ("b", 0), ("gone", 0), ("c", 2)], Collector())
    assert sorted(operator.keys()) == ["a", "b", "c"]


def test_state_may_change_in_the_loop(opened: Callable[..., Any]) -> None:
    def swap(self: Any) -> None:
        for key in self.keys():
            self.seen.add(len(key))
            self.worst.clear()

    def read(self: Any) -> Any:
        return {key: (self.worst.value(), self.seen.get()) for key in self.keys()}

    chain = chain_with(opened, on_checkpoint=swap, close=read)
    chain.checkpoint(CHECKPOINT)
    assert chain.close() == []
    assert chain.operators[0].used == {"JFK": (0, [3]), "LGA": (0, [3])}  # type: ignore[attr-defined]


def left_by_break(self: Any) -> None:
    for _ in self.keys():
        break
    self.worst.value()


def left_by_an_exception(self: Any) -> None:
    try:
        for _ in self.keys():
            raise ValueError
    except ValueError:
        self.worst.value()


def left_by_its_end(self: Any) -> None:
    for _ in self.keys():
        pass
    self.worst.value()


@pytest.mark.parametrize("leave", [left_by_break, left_by_an_exception, left_by_its_end])
def test_after_the_loop_there_is_no_key(opened: Callable[..., Any], leave: Use) -> None:
    with pytest.raises(UserCodeError) as caught:
        chain_with(opened, on_end=leave).end()
    assert isinstance(caught.value.__cause__, NoCurrentKey)


@pytest.mark.parametrize("again", ["on_idle", "close"])
def test_an_iterator_that_is_kept_sets_no_key_later(opened: Callable[..., Any], again: str) -> None:
    def keep(self: Any) -> None:
        self.kept = self.keys()
        next(self.kept)

    chain = chain_with(opened, on_end=keep, **{again: lambda self: next(self.kept)})
    chain.end()
    assert not hasattr(chain.operators[0], "key")
    with pytest.raises(UserCodeError) as caught:
        HOOKS[again](chain)
    assert isinstance(caught.value.__cause__, NoCurrentKey)
    assert "an iterator of self.keys() from an earlier call" in str(caught.value.__cause__)


def test_an_iterator_that_is_dropped_late_takes_no_key_away(opened: Callable[..., Any]) -> None:
    class Keeping(Worst):
        kept: Any = None

        def on_idle(self, out: Collector) -> None:
            self.kept = self.keys()
            next(self.kept)

        def process(self, record: Any, out: Collector) -> None:
            self.kept = None
            super().process(record, out)
            out.collect((self.key, self.worst.value()))

    emitted: list[Any] = []
    chain = OperatorChain([opened(Keeping(), 0)], emitted.append)
    chain.process([("JFK", 3)])
    chain.idle()
    chain.process([("JFK", 2)])
    assert emitted == [[("JFK", 3)], [("JFK", 3)]]


def test_where_a_key_is_set_no_loop_takes_it_away(opened: Callable[..., Any]) -> None:
    class Looping(Worst):
        def process(self, record: Any, out: Collector) -> None:
            for _ in self.keys():
                raise AssertionError("it has begun")

    with pytest.raises(UserCodeError, match="at record 0") as caught:
        opened(Looping(), 0).process_batch([("JFK", 3)], Collector())
    assert isinstance(caught.value.__cause__, HasCurrentKey)
    assert str(caught.value.__cause__).startswith(
        "operator 'the-operator': self.keys() was used where the key is 'JFK': it sets one key after the other"
    )
    chain = chain_with(opened, on_end=lambda self: [key for _ in self.keys() for key in self.keys()])
    with pytest.raises(UserCodeError) as caught:
        chain.end()
    assert isinstance(caught.value.__cause__, HasCurrentKey)


def test_a_process_batch_of_ones_own_has_no_key_before_or_after_the_records(opened: Callable[..., Any]) -> None:
    class Batched(Worst):
        def process_batch(self, batch: Any, out: Collector) -> None:
            super().process_batch(batch, out)
            out.collect(self.key)

    with pytest.raises(UserCodeError) as caught:
        OperatorChain([opened(Batched(), 0)], lambda batch: None).process([("JFK", 3)])
    assert str(caught.value.__cause__).startswith("operator 'the-operator': self.key was used without a key: ")


def test_an_attribute_error_about_something_else_stays_what_it_is(opened: Callable[..., Any]) -> None:
    with pytest.raises(UserCodeError) as caught:
        chain_with(opened, on_end=lambda self: self.context.key).end()
    assert type(caught.value.__cause__) is AttributeError


def test_a_record_function_that_fails_leaves_no_key_for_close(opened: Callable[..., Any]) -> None:
    class Failing(Worst):
        def process(self, record: Any, out: Collector) -> None:
            raise ValueError(record)

        def close(self) -> None:
            self.worst.value()

    chain = OperatorChain([opened(Failing(), 0)], lambda batch: None)
    with pytest.raises(UserCodeError, match="at record 0"):
        chain.process([("JFK", 3)])
    (error,) = chain.close()
    assert isinstance(error.__cause__, NoCurrentKey)
