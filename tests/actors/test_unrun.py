"""What user code returns in place of running, or of emitting, is refused where it returns; the record is named."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.errors import UnwantedResult, UserCodeError
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.filter import Filter
from understudy.actors.operators.flat_map import FlatMap
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.map import Map
from understudy.actors.operators.map_batches import MapBatches
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.reduce import KeyedReduce
from understudy.actors.operators.source import END, Source
from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.messages import dict_rows, make_rows
from understudy.runtime.connectors import GeneratorSource
from understudy.testing import OperatorHarness

COLLECT_PATTERN = r"write out.collect\(x\) in place of `yield x`"
AWAIT = "which nothing awaits here: await it in `async def process`, or in an `async def` function of map"


async def fetch(record: Any) -> Any: ...


def several(record: Any) -> Iterator[Any]:
    yield record


async def stream(record: Any) -> AsyncIterator[Any]:
    yield record


class Future:
    """An awaitable that is no coroutine, as clients return them."""

    def __await__(self) -> Iterator[Any]:
        yield


@pytest.fixture(autouse=True)
def _nothing_is_left_unawaited() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # not of harnesses that other tests left open
        yield


def refused(operator: Any, records: Any, key_by: Any = None) -> UserCodeError:
    with OperatorHarness(operator, key_by=key_by) as harness:
        with pytest.raises(UserCodeError) as caught:
            harness.process(records)
        assert harness.take_batches() == []
    return caught.value


UNRUN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a coroutine": (lambda record: fetch(record), rf"returned a coroutine \(fetch\), {AWAIT}"),
    "an async generator": (lambda record: stream(record), r"returned an async generator \(stream\), which nothing"),
    "an awaitable": (lambda record: Future(), "returned an awaitable Future, which nothing awaits here"),
    "a generator": (lambda record: several(record), r"returned a generator \(several\), none of whose code has run: "),
}


@pytest.mark.parametrize(("returns", "told"), UNRUN.values(), ids=UNRUN)
@pytest.mark.parametrize("kind", [Map, Filter])
def test_map_and_filter(kind: Any, returns: Callable[[Any], Any], told: str) -> None:
    error = refused(kind(returns), [1, 2, 3])
    assert error.record_position == 0
    assert isinstance(error.__cause__, UnwantedResult)
    assert "-1' raised at record 0 of this attempt: UnwantedResult: " in str(error)
    with pytest.raises(UnwantedResult, match=f"the (function of map|condition of filter) {told}"):
        raise error.__cause__


def test_the_record_at_fault_is_named_also_in_a_later_batch() -> None:
    with OperatorHarness(Map(lambda n: fetch(n) if n > 6 else n)) as harness:
        harness.process([1, 2, 3])
        with pytest.raises(UserCodeError, match="at record 4 of this attempt"):
            harness.process([4, 7, 8, *range(16), 17, 18])


@pytest.mark.parametrize("batch", [list(range(10)), pa.RecordBatch.from_pydict({"n": list(range(10))})])
def test_a_filter_looks_at_each_result_as_a_coroutine_counts_as_true(batch: Any) -> None:
    error = refused(Filter(lambda n: n == 7 and fetch(n) if isinstance(n, int) else n.n == 7 and fetch(n)), batch)
    assert error.record_position == 7


def test_a_filter_takes_what_counts_as_true_or_false() -> None:
    values: list[Any] = [0, 1, "", "a", None, [], [0], 2.5, True, False]
    with OperatorHarness(Filter(lambda value: value)) as harness:
        harness.process(values)
        assert harness.output() == [1, "a", [0], 2.5, True]


@pytest.mark.parametrize("returns", [UNRUN[kind][0] for kind in ("a coroutine", "an async generator", "an awaitable")])
def test_flat_map_and_map_batches(returns: Callable[[Any], Any]) -> None:
    for operator, records in ((FlatMap(returns), [1]), (MapBatches(returns), pa.RecordBatch.from_pydict({"n": [1]}))):
        cause = refused(operator, records).__cause__
        assert str(cause).startswith("the function of ")
        assert AWAIT in str(cause)


def test_flat_map_of_coroutines_and_of_generators_in_a_generator() -> None:
    assert "the iterable of flat_map returned a coroutine" in str(refused(FlatMap(lambda n: [fetch(n)]), [1]).__cause__)
    nested = refused(FlatMap(lambda n: [several(n), several(n)]), [1]).__cause__
    assert str(nested).endswith("none of whose code has run: yield its items, with `yield from`")


@pytest.mark.parametrize("one", [1, None, {"a": 1}, "abc", *dict_rows([{"a": 1}]), *make_rows(("a",), [(1,)])])
def test_a_flat_map_that_returns_one_record_is_told_what_is_wanted(one: Any) -> None:
    text = str(refused(FlatMap(lambda _: one), [1]).__cause__)
    assert text.startswith(f"the function of flat_map ({__file__}:")
    assert f") returned {one!r}" in text
    assert "wanted an iterable of records: return a list of them, [] for none, or `yield` each" in text


def test_reduce() -> None:
    error = refused(KeyedReduce(lambda one, other: fetch(other)), [1, 2, 1, 1], key_by=lambda n: n)
    assert error.record_position == 2
    assert "the function of reduce returned a coroutine" in str(error.__cause__)


def test_a_key_function() -> None:
    class Passing(KeyedOperator):
        def process(self, record: Any, out: Collector) -> None: ...

    error = refused(Passing, [1, 2, 3], key_by=lambda n: fetch(n) if n > 1 else n)
    assert error.record_position == 1
    assert "the key function returned a coroutine (fetch), which nothing" in str(error.__cause__)


@pytest.mark.parametrize("columnar", [False, True])
def test_generate(columnar: bool) -> None:
    function: Any = (lambda start, rows: fetch(start)) if columnar else (lambda index: fetch(index))
    harness = OperatorHarness(GeneratorSource(function, 10, schema=pa.schema([])))
    with pytest.raises(UserCodeError) as caught:
        harness.poll()
    assert "the function of generate returned a coroutine" in str(caught.value.__cause__)


class Returning(KeyedOperator):
    def __init__(self, returns: Callable[[Any], Any]) -> None:
        self.returns = returns

    def process(self, record: Any, out: Collector) -> Any:
        out.collect(record)
        return self.returns(record)


@pytest.mark.parametrize(
    ("returns", "told"),
    [
        (lambda n: fetch(n) if n else None, rf"Returning.process returned a coroutine \(fetch\), {AWAIT}"),
        (lambda n: several(n) if n else None, rf"process returned a generator \(several\), none .*: {COLLECT_PATTERN}"),
        (lambda n: [n] if n else None, r"process returned \[1\] \(list\), which would be lost: wanted None; what"),
        (lambda n: n or None, r"Returning.process returned 1 \(int\), which would be lost"),
    ],
    ids=["coroutine", "generator", "list", "number"],
)
def test_process_returns_nothing(returns: Any, told: str) -> None:
    error = refused(Returning(returns), [0, 0, 1], key_by=lambda n: n)
    assert error.record_position == 2
    with pytest.raises(UnwantedResult, match=told):
        raise error.__cause__  # type: ignore[misc]


def test_process_2_is_named() -> None:
    class Both(Returning):
        inputs = 2

        def process_2(self, record: Any, out: Collector) -> Any:
            return record

    with OperatorHarness(Both(lambda n: None), key_by=abs, key_by_2=abs) as harness:
        harness.process([1])
        with pytest.raises(UserCodeError) as caught:
            harness.process([1], input_index=1)
    assert "Both.process_2 returned 1 (int)" in str(caught.value.__cause__)


class Hooked(Operator):
    """Calls back what a test gives it in the hook of that name."""

    def __init__(self, hook: str, returns: Callable[[], Any]) -> None:
        self.hook, self.returns = hook, returns

    def _in(self, hook: str) -> Any:
        return self.returns() if hook == self.hook else None

    def open(self) -> Any:
        return self._in("open")

    def process_batch(self, batch: Any, out: Collector) -> Any:
        return self._in("process_batch")

    def on_end(self, out: Collector) -> Any:
        return self._in("on_end")

    def before_barrier(self, checkpoint_id: Any, out: Collector) -> Any:
        return self._in("before_barrier")

    def on_checkpoint(self, checkpoint_id: Any) -> Any:
        return self._in("on_checkpoint")

    def on_checkpoint_complete(self, checkpoint_id: Any) -> Any:
        return self._in("on_checkpoint_complete")

    def on_receive(self, message: Any) -> Any:
        return self._in("on_receive")

    def close(self) -> Any:
        return self._in("close")


def live_through(operator: Operator) -> None:
    with OperatorHarness(operator) as harness:
        harness.process([1])
        harness.complete(harness.snapshot().checkpoint_id)
        harness.ask("what")
        harness.end()


HOOKS = ("open", "process_batch", "on_end", "before_barrier", "on_checkpoint", "on_checkpoint_complete", "close")


@pytest.mark.parametrize("hook", [*HOOKS, "on_receive"])
@pytest.mark.parametrize("returns", [lambda: fetch(1), lambda: several(1), lambda: stream(1)])
def test_no_hook_returns_what_has_not_run(hook: str, returns: Callable[[], Any]) -> None:
    with pytest.raises((UserCodeError, UnwantedResult)) as caught:
        live_through(Hooked(hook, returns))
    cause = caught.value.__cause__ if isinstance(caught.value, UserCodeError) else caught.value
    assert str(cause).startswith(f"Hooked.{hook} returned a")


@pytest.mark.parametrize("hook", ["process_batch", "on_end", "before_barrier"])
def test_a_hook_that_emits_returns_nothing(hook: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        live_through(Hooked(hook, lambda: [1]))
    assert f"Hooked.{hook} returned [1] (list), which would be lost" in str(caught.value.__cause__)


@pytest.mark.parametrize("hook", ["open", "on_checkpoint", "on_checkpoint_complete", "close"])
def test_what_another_hook_returns_is_of_no_consequence(hook: str) -> None:
    live_through(Hooked(hook, lambda: True))


class Reading(Source):
    def __init__(self, hook: str) -> None:
        self.hook = hook

    def _or_fetch(self, hook: str, value: Any) -> Any:
        return fetch(hook) if self.hook == hook else value

    def poll(self) -> Any:
        return self._or_fetch("poll", END)

    def offset(self) -> Any:
        return self._or_fetch("offset", 1)

    def seek(self, offset: Any) -> Any:
        return self._or_fetch("seek", None)


@pytest.mark.parametrize("hook", ["poll", "offset", "seek"])
def test_a_source(hook: str) -> None:
    def poll_and_restore() -> None:
        with OperatorHarness(Reading(hook)) as harness:
            harness.poll()
            harness.restored(harness.snapshot()).close()

    with pytest.raises(UserCodeError) as caught:
        poll_and_restore()
    assert f"Reading.{hook} returned a coroutine (fetch)" in str(caught.value.__cause__)


class Writing(TwoPhaseCommitSink[Any]):
    def __init__(self, method: str) -> None:
        self.method = method

    def _or_fetch(self, method: str) -> Any:
        return fetch(method) if self.method == method else None

    def begin_transaction(self) -> Any:
        return self._or_fetch("begin_transaction")

    def write(self, transaction: Any, batch: Any) -> Any:
        return self._or_fetch("write")

    def pre_commit(self, transaction: Any) -> Any:
        return self._or_fetch("pre_commit")

    def commit(self, transaction: Any) -> Any:
        return self._or_fetch("commit")

    def abort(self, transaction: Any) -> Any:
        return self._or_fetch("abort")


@pytest.mark.parametrize("method", ["begin_transaction", "write", "pre_commit", "commit", "abort"])
def test_a_two_phase_commit_sink(method: str) -> None:
    def write_and_commit() -> None:
        with OperatorHarness(Writing(method)) as harness:
            harness.process([1])
            harness.complete(harness.snapshot().checkpoint_id)

    with pytest.raises(UserCodeError) as caught:
        write_and_commit()
    assert f"Writing.{method} returned a coroutine (fetch)" in str(caught.value.__cause__)
