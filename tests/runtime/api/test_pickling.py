"""User code that cannot be shipped: the operator, the object at fault and the way to it are named."""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from understudy import JobHandle, LocalCluster
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import NotPicklable
from understudy.runtime.api.pickling import LARGE_BYTES
from understudy.runtime.api.translation import translate

LOCK = threading.Lock()


class Guarded(Operator):
    def __init__(self) -> None:
        self.guards = {"main": threading.Lock()}

    def process_batch(self, batch: Any, out: Collector) -> None: ...


def _closure() -> Callable[[Any], Any]:
    lock = threading.Lock()

    def guarded(record: Any) -> Any:
        with lock:
            return record

    return guarded


def _with_default() -> Callable[[Any], Any]:
    return lambda record, lock=threading.Lock(): (record, lock)  # noqa: B008


def _session() -> Callable[[Any], Any]:
    """A closure over what stands for a SparkSession: its class lives in the package pyspark, and it does not pickle."""
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.session", "__reduce__": _refuse})
    spark = kind()
    return lambda record: (spark, record)


def _shell() -> Any:
    """What stands for that of a notebook."""
    return type("Shell", (), {"__module__": "ipykernel.zmqshell", "__reduce__": _refuse})()


class _Handle(JobHandle):
    def __init__(self) -> None:
        self._lock = threading.Lock()


def _captured(held: Any) -> Callable[[Any], Any]:
    return lambda record: (held, record)


def _refuse(_self: Any) -> Any:
    raise RuntimeError("only valid on the driver")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            _closure(),
            r"holds a _thread\.lock \(.*variable 'lock' of guarded at .*\.py:\d+\)\. Make it in open\(\) of an",
        ),
        (lambda record: (LOCK, record), r"holds a _thread\.lock \(.*variable 'LOCK' of <lambda> at .*:\d+\)"),
        (_with_default(), r"holds a _thread\.lock \(.*a default of <lambda> at .*:\d+\)"),
        (
            functools.partial(_closure()),
            r"holds a _thread\.lock \(.*the partial's function -> variable 'lock' of guarded",
        ),
        (
            _captured(LocalCluster()),
            r"holds a LocalCluster \(.*variable 'held' of <lambda> .*\)\. A cluster, and a handle of its jobs, work "
            r"only in the program that has made them: get there what the operator needs, and let it hold that value\.$",
        ),
        (_captured([_Handle()]), r"holds a _Handle \(.*item 0\)\. A cluster, and a handle of its jobs"),
        (
            _captured(_shell()),
            r"holds an ipykernel\.zmqshell\.Shell \(.*\)\. A notebook's shell.*in the notebook only",
        ),
        (_session(), r"holds a pyspark\.sql\.session\.SparkSession \(.*\)\. Spark objects live on the driver only"),
    ],
)
def test_a_captured_object_is_found(
    env: StreamEnvironment, program: Any, function: Callable[[Any], Any], message: str
) -> None:
    env.from_collection([1]).map(str).map(function, name="enrich").sink_to(program.Swallow)
    with pytest.raises(NotPicklable, match=f"operator 'enrich' cannot be shipped to the TaskManagers: it {message}"):
        program.translated(env)


def test_an_attribute_is_found(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).process(Guarded(), name="guarded").sink_to(program.Swallow)
    with pytest.raises(NotPicklable, match=r"'guarded' .*_thread\.lock \(attribute 'guards' -> item 'main'\)"):
        program.translated(env)


def test_a_key_function_is_named_with_its_operator(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).key_by(_closure()).process(program.Worst, name="worst").sink_to(program.Swallow)
    with pytest.raises(NotPicklable, match=r"operator 'worst' .*variable 'lock' of guarded"):
        program.translated(env)


def test_a_method_of_a_class_that_is_shipped_by_value_is_looked_into(env: StreamEnvironment, program: Any) -> None:
    class Local(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            with LOCK:
                out.emit(batch)

    env.from_collection([1]).process(Local, name="local").sink_to(program.Swallow)
    with pytest.raises(NotPicklable, match=r"class Local -> method process_batch -> variable 'LOCK' of process_batch"):
        program.translated(env)


def test_a_lambda_and_a_local_class_can_be_shipped(env: StreamEnvironment, program: Any) -> None:
    class Local(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            out.emit(batch)

    env.from_collection([1]).map(lambda record: record + 1).process(Local).sink_to(program.Swallow)
    program.translated(env)


class Shy:
    def __reduce__(self) -> Any:
        raise RuntimeError("not today")


@pytest.mark.parametrize(("held", "has_frames"), [(threading.Lock(), False), (Shy(), True)])
def test_frames_are_shown_of_user_code_that_refuses_and_not_of_pickle(
    env: StreamEnvironment, program: Any, held: Any, has_frames: bool
) -> None:
    """One traceback in place of three, with the text at its end."""
    env.from_collection([1]).map(lambda record: (record, held)).sink_to(program.Swallow)
    with pytest.raises(NotPicklable) as refused:
        program.translated(env)
    shown = "".join(traceback.format_exception(refused.value))
    assert shown.count("Traceback (most recent call last)") == 1 + has_frames
    assert ("in __reduce__" in shown) is has_frames


class Model(Operator):
    def __init__(self) -> None:
        self.weights = bytes(LARGE_BYTES)

    def process_batch(self, batch: Any, out: Collector) -> None: ...


class Selective(Model):
    """What it has beside its weights stays here."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__ = {"lock": threading.Lock(), **self.__dict__}

    def __getstate__(self) -> dict[str, Any]:
        return {"weights": self.weights}


def _large_closure() -> Callable[[Any], Any]:
    table = {number: bytes(LARGE_BYTES // 4) for number in range(5)}

    def looked_up(record: Any) -> Any:
        return len(table[record])

    return looked_up


def said_of_size(build: Callable[[StreamEnvironment], Any], recwarn: pytest.WarningsRecorder) -> list[str]:
    env = StreamEnvironment()
    build(env)
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
    return [str(each.message) for each in recwarn]


@pytest.mark.parametrize(
    ("build", "holds"),
    [
        (lambda stream: stream.map(_large_closure(), name="x"), "variable 'table' of looked_up at "),
        (lambda stream: stream.process(Model(), name="x"), "attribute 'weights'"),
        (lambda stream: stream.process(Selective(), name="x"), "attribute 'weights'"),
        (lambda stream: stream.map(functools.partial(max, bytes(LARGE_BYTES)), name="x"), "its arguments"),
    ],
)
def test_an_operator_that_is_large_is_warned_of(
    build: Callable[[Any], Any], holds: str, recwarn: pytest.WarningsRecorder
) -> None:
    """Nothing else says why a submit takes a minute."""
    (said,) = said_of_size(lambda env: build(env.from_collection([1])).print(), recwarn)
    assert said.startswith("operator 'x' takes ")
    assert " MB to each TaskManager" in said
    assert holds in said


def test_a_small_operator_and_the_data_of_a_source_are_not_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    assert said_of_size(lambda env: env.from_collection([bytes(LARGE_BYTES)]).map(len).print(), recwarn) == []
