"""Programs to try the API with: a columnar source, a DataFrame without Spark, and the operators of a small job."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.source import END, Source
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import Translation, translate

FLIGHTS = pa.schema([("origin", pa.string()), ("dep_delay", pa.float64()), ("distance", pa.int64())])


class Flights(Source):
    """A columnar source with known columns and nothing in it."""

    def __init__(self, schema: pa.Schema = FLIGHTS, bounded: bool = True) -> None:
        self.schema, self.bounded = schema, bounded

    def poll(self) -> Any:
        return END

    def offset(self) -> Any:
        return 0

    def seek(self, offset: Any) -> None: ...

    def source_schema(self) -> pa.Schema | None:
        return self.schema


class Worst(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Meet(KeyedOperator):
    inputs = 2

    def process(self, record: Any, out: Collector) -> None: ...

    def process_2(self, record: Any, out: Collector) -> None: ...


class Swallow(Operator):
    """A sink."""

    takes = "any"

    def process_batch(self, batch: Any, out: Collector) -> None: ...


class Program:
    """What the tests share, as the fixture `program`: in pytest's importlib mode tests do not import each other."""

    FLIGHTS, Flights, Worst, Meet, Swallow = FLIGHTS, Flights, Worst, Meet, Swallow

    @staticmethod
    def translated(environment: StreamEnvironment, **settings: Any) -> Translation:
        chosen = {"default_parallelism": 2, "task_managers": 2, "work_dir": "/work-dir"} | settings
        return translate(environment, **chosen)

    @classmethod
    def shape(cls, environment: StreamEnvironment, **settings: Any) -> tuple[list[str], list[str]]:
        """The graph as text: vertices as "a -> b x2", edges as "a =hash=> c" with the input when it is the second."""
        graph = cls.translated(environment, **settings).graph
        vertices = [f"{vertex.name} x{vertex.parallelism}" for vertex in graph.vertices]
        edges = [
            f"{edge.source} ={edge.partitioning.value}=> {edge.target}" + (":2" if edge.input_index else "")
            for edge in graph.edges
        ]
        return vertices, edges


@pytest.fixture
def program() -> type[Program]:
    return Program


@pytest.fixture
def env() -> StreamEnvironment:
    return StreamEnvironment()
