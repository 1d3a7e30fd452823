"""A state that is used as if it were what it holds, or a collection, says so; a value in its place is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    Collector,
    InvalidOperator,
    JobFailed,
    KeyedOperator,
    ListState,
    LocalCluster,
    MapState,
    StreamEnvironment,
    ValueState,
)
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness


class Appending(KeyedOperator):
    seen = ListState(int)

    def process(self, record: Any, out: Collector) -> None:
        self.seen.append(record["t"])  # type: ignore[attr-defined]


class Looping(Appending):
    def process(self, record: Any, out: Collector) -> None:
        out.collect([*self.seen])  # type: ignore[misc]


class Setting(KeyedOperator):
    seen = MapState(str, int)

    def process(self, record: Any, out: Collector) -> None:
        self.seen["t"] = record["t"]  # type: ignore[index]


class Getting(KeyedOperator):
    seen = ValueState(int)

    def process(self, record: Any, out: Collector) -> None:
        out.collect(self.seen.getvalue())  # type: ignore[attr-defined]


class Counted(KeyedOperator):
    """Each is a mistake that was silent, or whose error named a class that no user knows."""

    n = ValueState(int, default=0)
    seen = MapState(str, int)
    items = ListState(int)

    def __init__(self, use: Callable[[Any, Collector], Any]) -> None:
        self.use = use

    def process(self, record: Any, out: Collector) -> None:
        self.use(self, out)


OF_VALUE = "state 'n' is a ValueState, and not what it holds, which comes of .value()"


class CountedByCoroutines(Counted):
    async def process(self, record: Any, out: Collector) -> None:  # type: ignore[override]
        self.use(self, out)


@pytest.mark.parametrize("kind", [Counted, CountedByCoroutines])
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda it, _: it.n == 0, OF_VALUE),
        (lambda it, _: it.n != 0, OF_VALUE),
        (lambda it, _: 1 if it.n else 2, OF_VALUE),
        (
            lambda it, _: not it.seen,
            "state 'seen' is a MapState, and not what it holds, which comes of .get(key), .items()",
        ),
        (lambda it, _: bool(it.items), "state 'items' is a ListState, and not what it holds, which comes of .get()"),
        (lambda it, _: it.n > 3, OF_VALUE),
        (lambda it, _: it.n < 3, OF_VALUE),
        (lambda it, _: it.n + 1, OF_VALUE),
        (lambda it, _: 1 + it.n, OF_VALUE),
        (lambda it, _: f"{it.n}", OF_VALUE),
        (lambda it, _: int(it.n), OF_VALUE),
        (lambda it, _: len(it.items), "state 'items' is a ListState, and neither a list nor a dict: it has get"),
        (lambda it, _: "a" in it.seen, "state 'seen' is a MapState, and neither a list nor a dict: it has get, put"),
        (lambda it, _: it.seen.__delitem__("a"), "state 'seen' is a MapState, and neither a list nor a dict"),
        (lambda it, _: it.n.get(), "state 'n' is a ValueState, which has no 'get': write value(...) in its place"),
        (lambda it, _: it.n.vlaue(), "state 'n' is a ValueState, which has no 'vlaue': it has value, update and clear"),
        (
            lambda it, _: it.seen.put_all(),
            "state 'seen' is a MapState, which has no 'put_all': it has get, put, remove, contains, keys, values, ",
        ),
    ],
)
def test_a_state_that_is_taken_for_what_it_holds_says_so(use: Any, says: str, backend: str, kind: Any) -> None:
    with (
        OperatorHarness(kind(use), key_by="k", state_backend=backend) as harness,
        pytest.raises(UserCodeError) as caught,
    ):
        _ = harness.process([{"k": 1}]), harness.end()
    assert says in str(caught.value.__cause__)


def _set_in(method: str, body: str) -> type[KeyedOperator]:
    space: dict[str, Any] = {}
    source = f"def {method}(self, *given):\n    {body}\n"
    exec(compile(source, "orders.py", "exec"), space)
    own = {"process": lambda *_: None, **space, "n": ValueState(int), "seen": MapState(str, int)}
    return type("Orders", (KeyedOperator,), own)


@pytest.mark.parametrize(
    ("method", "body", "says"),
    [
        (
            "process",
            "self.n = 5",
            r"orders.py:2: Orders.process assigns to 'n', which is a ValueState: a plain value in",
        ),
        ("on_timer", "self.n += 1", r"Orders.on_timer assigns to 'n', .* Write self\.n\.update\(value\)$"),
        ("process", "def f():\n        self.seen = {}", r"orders.py:3: .* Write self\.seen\.put\(key, value\)$"),
        ("__init__", "self.n = 5", r"Write self\.n\.update\(value\); what it holds at first is its default$"),
    ],
)
def test_a_value_in_the_place_of_a_state_is_refused_with_its_line(method: str, body: str, says: str) -> None:
    keyed = StreamEnvironment().from_collection([{"k": 1}]).key_by("k")
    with pytest.raises(InvalidOperator, match=says):
        keyed.process(_set_in(method, body)())


def test_a_state_is_no_record() -> None:
    env = StreamEnvironment()
    sent = Counted(lambda it, out: out.collect(it.n))
    env.from_collection([{"k": 1}]).key_by("k").process(sent).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        said = "<ValueState 'n', which holds .value\\(\\)> is an object of this library, and no record: emit or store"
        with pytest.raises(JobFailed, match=said):
            cluster.submit(env).wait()


def test_a_state_shows_itself() -> None:
    shown = Counted(lambda it, out: out.collect(repr(it.n)))
    with OperatorHarness(shown, key_by="k") as harness:
        harness.process([{"k": 1}])
        assert harness.output() == ["<ValueState 'n', which holds .value()>"]


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (Appending, "state 'seen' is a ListState, which has no 'append': write add(...) in its place"),
        (Looping, "state 'seen' is a ListState, and neither a list nor a dict: it has get, add"),
        (Setting, "state 'seen' is a MapState, and neither a list nor a dict: it has get, put"),
        (Getting, "state 'seen' is a ValueState, which has no 'getvalue': it has value, update and clear"),
    ],
)
def test_a_state_that_is_taken_for_a_collection_says_what_it_has(operator: Any, says: str, backend: str) -> None:
    with (
        OperatorHarness(operator, key_by="k", state_backend=backend) as harness,
        pytest.raises(UserCodeError) as caught,
    ):
        harness.process([{"k": 1, "t": 1}])
    assert says in str(caught.value.__cause__)
