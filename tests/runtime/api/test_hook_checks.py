"""A coroutine or a generator that would never run is refused where the stream is built, saying what to write."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from understudy import FileSink, monotonous
from understudy.actors.errors import UnwantedResult
from understudy.actors.operators.async_functions import AsyncFilter, AsyncFlatMap, AsyncMap
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.of_call import PROCESSING
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.source import Source
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import InvalidOperator
from understudy.runtime.api.hook_checks import HOOKS
from understudy.state import FoldingState, ReducingState
from understudy.testing import OperatorHarness

NOT_ASYNC = "write a plain function here; what waits goes into `async def process`, or an `async def` function of map"


async def fetch(*_: Any) -> Any:
    return 1


def forgotten(record: Any) -> Any:
    record > 3  # noqa: B015 - the mistake


def either(record: Any) -> Any:
    return record if record else None


sometimes_none = [
    either,
    lambda record: record.get("at") or None,
    lambda record: record["at"] if record else None,
    lambda record: record and None,
]


async def forgotten_async(record: Any) -> Any:
    if record:
        await fetch(record)
        return
    await fetch()


def found_sometimes(record: Any) -> Any:
    if record:
        return record
    return None


def always_fails(record: Any) -> Any:
    raise ValueError(record)


def several(*_: Any) -> Iterator[int]:
    yield 1


async def stream(*_: Any) -> AsyncIterator[int]:
    yield 1


class Bound:
    async def method(self, record: Any) -> Any:
        return record

    @staticmethod
    async def static(record: Any) -> Any:
        return record

    @classmethod
    async def of_class(cls, record: Any) -> Any:
        return record

    async def __call__(self, record: Any) -> Any:
        return record


def plain_around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        return asyncio.run(function(*args))

    return run


def async_around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(*args: Any) -> Any:
        return function(*args)

    return run


@async_around
def decorated(record: Any) -> Any: ...


ASYNC = {
    "a function": fetch,
    "an async generator": stream,
    "a partial": functools.partial(functools.partial(fetch, 1), 2),
    "a bound method": Bound().method,
    "a static method": Bound.static,
    "a class method": Bound.of_class,
    "an object": Bound(),
    "a cached function": functools.lru_cache(fetch),
    "a decorated function": decorated,
    "a lambda's partial": functools.partial(Bound().method),
}


INSTEAD = {
    "map_batches": "a task calls it as a plain function: write an operator with `async def process_batch`",
    "key_by": f"a task calls it as a plain function: {NOT_ASYNC}",
}


class TestFunctions:
    @pytest.mark.parametrize("function", ASYNC.values(), ids=ASYNC)
    def test_map_filter_and_flat_map_take_coroutine_functions(self, env: StreamEnvironment, function: Any) -> None:
        numbers = env.from_collection([1])
        assert isinstance(numbers.flat_map(function)._own_node().operator, AsyncFlatMap)
        if function is not stream:
            assert isinstance(numbers.map(function)._own_node().operator, AsyncMap)
            assert isinstance(numbers.filter(function)._own_node().operator, AsyncFilter)

    @pytest.mark.parametrize(
        ("method", "wanted"),
        [
            ("filter", "return True or False"),
            ("flat_map", "return a list of records"),
            ("map_batches", "return the batch that takes its place"),
            ("key_by", "return the key"),
            ("assign_timestamps", "return the event time"),
        ],
    )
    @pytest.mark.parametrize("function", [forgotten, forgotten_async, functools.partial(forgotten)])
    def test_one_that_returns_nothing_is_refused(
        self, env: StreamEnvironment, method: str, wanted: str, function: Any
    ) -> None:
        if function is forgotten_async and method not in ("filter", "flat_map"):
            return
        more = [monotonous()] if method == "assign_timestamps" else []
        with pytest.raises(InvalidOperator, match=rf"{method}: .*forgotten.* returns nothing .*{wanted}.*a `return`"):
            getattr(env.from_collection([1]), method)(function, *more)

    @pytest.mark.parametrize("function", [forgotten, forgotten_async])
    def test_map_warns_of_it_as_it_may_be_called_for_what_it_does(self, env: StreamEnvironment, function: Any) -> None:
        with pytest.warns(UserWarning, match=r"map: .*forgotten.* returns nothing .*the record that takes") as warned:
            env.from_collection([1]).map(function)
        assert warned[0].filename == __file__

    @pytest.mark.parametrize(
        "function", [lambda record: record.update(x=1), lambda record: record["seen"].append(record["x"])]
    )
    def test_map_warns_of_a_lambda_that_only_changes_its_record_in_place(
        self, env: StreamEnvironment, function: Any
    ) -> None:
        with pytest.warns(UserWarning, match=r"map: .*<lambda> .* gives what \.\w+\(\.\.\.\) returns, which is None"):
            env.from_collection([1]).map(function)

    def test_whatever_the_argument_is_made_of(self, env: StreamEnvironment) -> None:
        with pytest.warns(UserWarning, match=r"filter: .* gives what \.update\(\.\.\.\) returns, which is None"):
            env.from_collection([1]).filter(lambda record: record.update(x=+record["x"], y=(*record, 1)))  # type: ignore[attr-defined]

    def test_filter_warns_of_it_too(self, env: StreamEnvironment) -> None:
        with pytest.warns(UserWarning, match=r"filter: .*<lambda> .* returns, which is None .*: return True or False"):
            env.from_collection([1]).filter(lambda record: record.update(x=1))  # type: ignore[attr-defined]

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("function", sometimes_none)
    def test_one_that_returns_nothing_for_some_records_is_taken(self, env: StreamEnvironment, function: Any) -> None:
        env.from_collection([{"at": 1}]).filter(function).map(function).key_by(function)

    @pytest.mark.parametrize(
        "function",
        [
            print,
            lambda record: print(record),
            lambda record: print("seen", record),
            lambda record: print(*record, "seen"),
            lambda record: print(+record),
        ],
    )
    def test_one_that_only_prints_keeps_nothing_and_says_so(self, env: StreamEnvironment, function: Any) -> None:
        text = (
            r"the function .* gives what print\(\.\.\.\) returns, which is None: return .*to see records, \.print\(\)"
        )
        with pytest.raises(InvalidOperator, match=f"filter: {text}"):
            env.from_collection([1]).filter(function)
        with pytest.warns(UserWarning, match=f"map: {text}") as warned:
            env.from_collection([1]).map(function)
        assert warned[0].filename == __file__

    @pytest.mark.parametrize(
        "function",
        [
            lambda record: print(record) or True,
            lambda record: (print(record), True)[1],
            lambda record, print=abs: print(record),
        ],
    )
    def test_one_that_prints_and_gives_something_is_taken(self, env: StreamEnvironment, function: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.from_collection([1]).filter(function).map(function)

    @pytest.mark.parametrize(
        "function",
        [
            lambda record: record.update(x=1) or record,
            lambda record: (record.update(x=1), record)[1],
            lambda record: record.get("update"),
            lambda record: str(record.update(x=1)),
            lambda record: record.update,
        ],
    )
    def test_map_does_not_warn_of_one_that_gives_something(self, env: StreamEnvironment, function: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.from_collection([1]).map(function)

    @pytest.mark.parametrize("function", [found_sometimes, always_fails, lambda record: record.get("flag"), breakpoint])
    def test_one_that_returns_something_at_times_is_not(self, env: StreamEnvironment, function: Any) -> None:
        env.from_collection([1]).filter(function)
        env.from_collection([1]).map(function)

    @pytest.mark.parametrize(("method", "instead"), INSTEAD.items())
    @pytest.mark.parametrize("function", ASYNC.values(), ids=ASYNC)
    def test_other_functions_of_a_stream_may_not_be(
        self, env: StreamEnvironment, method: str, instead: str, function: Any
    ) -> None:
        if function is stream:
            instead = {"key_by": "none of its code would run: return the key"}.get(method, instead)
        with pytest.raises(
            InvalidOperator, match=rf"{method}: the function .*test_hook_checks.py:\d+\), and {instead}"
        ):
            getattr(env.from_collection([1]), method)(function)

    @pytest.mark.parametrize(
        ("method", "instead"),
        [
            ("map", "return one record; for several use flat_map, which takes a generator"),
            ("filter", "return True or False"),
        ],
    )
    def test_nor_an_async_generator_where_one_value_is_wanted(
        self, env: StreamEnvironment, method: str, instead: str
    ) -> None:
        with pytest.raises(InvalidOperator, match=f"stream is an async generator .* of its code would run: {instead}"):
            getattr(env.from_collection([1]), method)(stream)

    def test_nor_that_of_reduce_and_generate(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidOperator, match=r"generate: the function fetch is `async def` \("):
            env.generate(fetch, 10)
        with pytest.raises(UnwantedResult, match="the function of generate returned a coroutine"):
            env.generate(lambda start, rows: fetch(start), 10)
        with pytest.raises(InvalidOperator, match=r"reduce: the function fetch is `async def` \("):
            env.from_collection([1]).key_by(abs).reduce(fetch)

    def test_nor_that_of_event_times(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidOperator, match=r"assign_timestamps: the function fetch is `async def` \("):
            env.from_collection([1]).assign_timestamps(fetch, monotonous())
        env.from_collection([1]).assign_timestamps(abs, monotonous())

    @pytest.mark.parametrize(
        ("method", "instead"),
        [
            ("map", "return one record; for several use flat_map, which takes a generator"),
            ("filter", "return True or False"),
            ("key_by", "return the key"),
        ],
    )
    def test_a_generator_is_refused_where_one_value_is_wanted(
        self, env: StreamEnvironment, method: str, instead: str
    ) -> None:
        line = several.__code__.co_firstlineno + 1
        where = rf"a generator \(`yield` at .*test_hook_checks.py:{line}\), and none of its code would run: {instead}"
        with pytest.raises(InvalidOperator, match=f"{method}: the function several is {where}"):
            getattr(env.from_collection([1]), method)(several)

    def test_flat_map_and_map_batches_take_generators(self, env: StreamEnvironment) -> None:
        env.from_collection([1]).flat_map(several).map_batches(several)

    def test_a_decorator_that_runs_the_coroutine_is_as_good_as_any_function(self, env: StreamEnvironment) -> None:
        env.from_collection([1]).map(plain_around(fetch)).filter(functools.partial(plain_around(fetch), 1))

    def test_a_class_and_a_builtin_are_plain(self, env: StreamEnvironment) -> None:
        env.from_collection([1]).map(Bound).map(str).map(len)


def operator_with(base: type[Operator], hook: str, function: Any) -> type[Operator]:
    """A complete operator, but for this hook."""

    def done(self: Any, *_: Any) -> None: ...

    wanted = {"poll", "offset", "seek"} if issubclass(base, Source) else {"process", "process_batch"}
    return type("Broken", (base,), dict.fromkeys(wanted, done) | {hook: function})


async def async_hook(self: Any, *_: Any) -> Any: ...


def yielding_hook(self: Any, *_: Any) -> Any:
    yield 1


ALL_HOOKS = [(base, hook) for base, hooks in HOOKS.items() for hook in hooks]


class TestHooks:
    @pytest.mark.parametrize(("base", "hook"), ALL_HOOKS, ids=lambda it: getattr(it, "__name__", it))
    def test_no_hook_is_a_generator_or_async_but_those_that_may(
        self, env: StreamEnvironment, base: type[Operator], hook: str
    ) -> None:
        functions = {"`async def` ": async_hook, "a generator ": yielding_hook, "an async gen": stream}
        if hook in PROCESSING:
            del functions["`async def` "]
        for found, function in functions.items():
            broken = operator_with(base, hook, function)
            with pytest.raises(InvalidOperator, match=f"^Broken.{hook} is {found}"):
                put_into(env, broken, hook)

    def test_every_public_hook_of_the_base_classes_is_in_the_table(self) -> None:
        for base in HOOKS:
            methods = {name for name, each in vars(base).items() if name[0] != "_" and callable(each)}
            known = {hook for hooks in HOOKS.values() for hook in hooks}
            assert methods - known <= {"keys", "processing_time", "transactions", "staged"}, base

    def test_it_says_what_to_write(self, env: StreamEnvironment) -> None:
        class Yielding(KeyedOperator):
            def process(self, record: Any, out: Collector) -> Any:
                if record:
                    yield record

        line = Yielding.process.__code__.co_firstlineno + 2
        with pytest.raises(InvalidOperator) as caught:
            env.from_collection([1]).key_by(abs).process(Yielding)
        assert str(caught.value) == (
            f"Yielding.process is a generator (`yield` at {__file__}:{line}), and none of its code would run: "
            "write out.collect(x) in place of `yield x`"
        )

    def test_compiled_operators_sinks_and_the_harness_too(self, env: StreamEnvironment) -> None:
        class Compiled(KeyedOperator):
            compiled = True

            async def process(self, record: Any, out: Collector) -> None: ...  # type: ignore[override]

        class Sink(FileSink):
            async def commit(self, transaction: Any) -> None: ...  # type: ignore[override]

        with pytest.raises(
            InvalidOperator, match=r"Compiled.process is `async def` .*, and `compiled = True`: machine"
        ):
            env.from_collection([1]).key_by(abs).process(Compiled)
        with pytest.raises(InvalidOperator, match=r"Sink.commit is `async def`"):
            env.from_collection([1]).sink_to(Sink("/tmp/nowhere"))
        with pytest.raises(InvalidOperator, match=r"Compiled.process is `async def`"):
            OperatorHarness(Compiled, key_by=abs)

    @pytest.mark.parametrize("hook", ["open", "close", "on_timer"])
    def test_what_may_be_async_beside_process_may_not_be_alone(self, env: StreamEnvironment, hook: str) -> None:
        alone = operator_with(KeyedOperator, hook, async_hook)
        with pytest.raises(InvalidOperator, match=f"`{hook}` may be async where `process`, or `process_batch`, is; or"):
            put_into(env, alone, hook)
        both = type("Both", (KeyedOperator,), {"process": async_hook, hook: async_hook})
        put_into(env, both, hook)

    def test_processing_is_async_in_one_way(self, env: StreamEnvironment) -> None:
        def plain(self: Any, *_: Any) -> None: ...

        numbers = env.from_collection([1])
        mixed = type("Mixed", (KeyedOperator,), {"inputs": 2, "process": async_hook, "process_2": plain})
        with pytest.raises(InvalidOperator, match=r"Mixed.process is .*, and process_2 is not: write both of them as"):
            numbers.key_by(abs).connect(numbers.key_by(abs)).process(mixed)
        twice = type("Twice", (Operator,), {"process": async_hook, "process_batch": async_hook})
        with pytest.raises(InvalidOperator, match=r"Twice.process is .*: only one of them would be called"):
            numbers.process(twice)
        keyed = type("Keyed", (KeyedOperator,), {"process_batch": async_hook})
        with pytest.raises(InvalidOperator, match=r"Keyed.process_batch is .* many keys .*: write `async def process`"):
            numbers.key_by(abs).process(keyed)

    def test_a_plain_subclass_of_an_async_operator_is_plain(self, env: StreamEnvironment) -> None:
        class Async(KeyedOperator):
            async def process(self, record: Any, out: Collector) -> None:  # type: ignore[override]
                out.collect(-record)

        class Plain(Async):
            def process(self, record: Any, out: Collector) -> None:  # type: ignore[override]
                out.collect((self.key, record))

        with OperatorHarness(Plain, key_by=abs) as harness:
            harness.process([1, -2])
            assert harness.output() == [(1, 1), (2, -2)]

    def test_a_method_of_ones_own_may_be_anything(self, env: StreamEnvironment) -> None:
        class Free(KeyedOperator):
            def process(self, record: Any, out: Collector) -> None:
                for each in self.write(record):
                    out.collect(each)

            def write(self, record: Any) -> Iterator[Any]:
                yield record

            async def poll(self) -> None: ...

        env.from_collection([1]).key_by(abs).process(Free)

    @pytest.mark.parametrize(
        ("state", "name"),
        [
            (ReducingState(int, fetch), "reduce"),
            (ReducingState(int, several), "reduce"),
            (FoldingState(int, 0, fetch), "fold"),
            (FoldingState(int, 0, max, merge=fetch), "merge"),
        ],
        ids=["reduce", "generator", "fold", "merge"],
    )
    def test_functions_of_states(self, env: StreamEnvironment, state: Any, name: str) -> None:
        operator = operator_with(KeyedOperator, "process", lambda self, record, out: None)
        operator.total = state  # type: ignore[attr-defined]
        with pytest.raises(InvalidOperator, match=f"^Broken.total: the {name} function is "):
            env.from_collection([1]).key_by(abs).process(operator)


def put_into(env: StreamEnvironment, operator: type[Operator], hook: str) -> None:
    if issubclass(operator, Source):
        env.from_source(operator.__new__(operator))
    elif hook.endswith("_2"):
        operator.inputs = 2
        first, second = env.from_collection([1]).key_by(abs), env.from_collection([1]).key_by(abs)
        first.connect(second).process(operator)
    else:
        env.from_collection([1]).key_by(abs).process(operator)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            lambda stream: stream.key_by(abs).reduce(lambda one: one),
            r"reduce: .*2 arguments, \(result, record\)",
        ),
        (lambda stream: stream.map(lambda: 1), r"map: .*1 argument, \(record\), and takes \(\)"),
        (lambda stream: stream.filter(lambda one, other: True), r"filter: .*missing a required argument: 'other'"),
        (lambda stream: stream.key_by(lambda: 1), "key_by: .*1 argument"),
    ],
)
def test_a_function_of_other_arguments_is_refused_where_it_is_written(made: Any, says: str) -> None:
    with pytest.raises(InvalidOperator, match=says):
        made(StreamEnvironment().from_collection([1]))


def test_functions_whose_arguments_fit_or_cannot_be_known_are_not() -> None:
    stream = StreamEnvironment().from_collection([1])
    stream.map(int).map(str).map(repr).map(lambda one, by=2: one * by).map(lambda *all: all).key_by(abs).reduce(max)
