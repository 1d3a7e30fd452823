"""What runs instead of what was written: two phases of aggregation, and sources that read less."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import DataStream, bounded_out_of_orderness, count, monotonous, session, sliding, tumbling
from understudy.actors.compiled import NumbaMissing
from understudy.actors.operators.aggregate import ColumnarAggregate, Count, LocalAggregate, Sum
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.windows.window_operator import WindowOperator
from understudy.messages import VertexId
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.connectors import FileSource


def operators(translation: Any, vertex: str) -> list[Any]:
    return list(translation.program.chain(VertexId(vertex)))


@pytest.fixture
def files(tmp_path: Path) -> str:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [1.0, 2.0], "d": [3, 4]}), tmp_path / "part.parquet")
    return str(tmp_path)


def test_an_aggregation_of_columns_has_a_phase_before_the_shuffle(env: StreamEnvironment, program: Any) -> None:
    flights = env.from_source(program.Flights(), name="flights", parallelism=3)
    flights.key_by("origin").aggregate(rows=Count(), name="by-origin").collect(name="out")
    assert program.shape(env) == (
        ["flights -> by-origin-local x3", "by-origin -> out x2"],
        ["flights =hash=> by-origin"],
    )
    assert program.shape(env) == program.shape(env), "the program itself has not changed"


def test_each_input_of_a_union_has_a_phase_of_its_own(env: StreamEnvironment, program: Any) -> None:
    one, two = (env.from_source(program.Flights(), name=name) for name in ("one", "two"))
    one.union(two).key_by("origin", "distance").aggregate(rows=Count(), name="both").collect(name="out")
    vertices, edges = program.shape(env)
    assert vertices == ["one -> both-local x2", "two -> both-local-2 x2", "both -> out x2"]
    assert edges == ["one =hash=> both", "two =hash=> both"]


def test_keys_by_position_are_found_in_partials_by_name(env: StreamEnvironment, program: Any) -> None:
    env.from_source(program.Flights()).key_by(-1, 0).aggregate(rows=Count()).collect()
    selector = program.translated(env).program.edge_selector(0)
    assert selector is not None
    assert selector.parts == ("distance", "origin")


def test_what_has_another_reader_is_aggregated_in_a_vertex_beside_it(env: StreamEnvironment, program: Any) -> None:
    flights = env.from_source(program.Flights(), name="flights", parallelism=1)
    flights.key_by("origin").aggregate(rows=Count(), name="rows").collect(name="out")
    flights.collect(name="all")
    vertices, edges = program.shape(env)
    assert "rows-local x1" in vertices
    assert "flights =forward=> rows-local" in edges


def test_unknown_columns_are_aggregated_in_one_phase(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([{"a": 1}], name="numbers").key_by("a").aggregate(rows=Count(), name="rows").collect(name="out")
    assert program.shape(env)[0] == ["numbers x1", "rows -> out x2"]


def test_other_keys_than_the_shuffles_are_aggregated_in_one_phase(env: StreamEnvironment, program: Any) -> None:
    flights = env.from_source(program.Flights(), name="flights")
    flights.key_by("origin").process(ColumnarAggregate(["origin", "distance"], {"n": Count()}), name="n").collect()
    assert program.shape(env)[0][0] == "flights x2"


def test_a_file_is_read_for_the_columns_that_count(env: StreamEnvironment, program: Any, files: str) -> None:
    source = env.from_parquet(files, name="files")
    source.key_by("b").aggregate(rows=Count(), total=Sum("d")).collect()
    source.key_by("d").aggregate(rows=Count()).collect()
    found = operators(program.translated(env), "files")[0]
    assert isinstance(found, FileSource)
    assert found.schema.names == ["b", "d"]
    assert found.batch_rows > 100_000
    assert isinstance(env.graph.nodes[0].operator, FileSource)
    assert env.graph.nodes[0].operator.schema.names == ["a", "b", "c", "d"]


def test_chosen_batches_stay_as_chosen(program: Any, files: str) -> None:
    env = StreamEnvironment(batch_rows=7)
    env.from_parquet(files, name="files").key_by("b").aggregate(rows=Count()).collect()
    source, local = operators(program.translated(env), "files")
    assert isinstance(source, FileSource)
    assert isinstance(local, LocalAggregate)
    assert source.batch_rows == 7


class Kept(FileSource):
    """A user's own: it may read whatever it likes."""


def test_a_subclass_of_a_users_is_left_alone(env: StreamEnvironment, program: Any, files: str) -> None:
    env.from_source(Kept(files, format="parquet"), name="files").key_by("b").aggregate(rows=Count()).collect()
    (found,) = (each for each in operators(program.translated(env), "files") if isinstance(each, Kept))
    assert found.schema.names == ["a", "b", "c", "d"]


def test_a_file_with_another_reader_is_read_as_a_whole(env: StreamEnvironment, program: Any, files: str) -> None:
    source = env.from_parquet(files, name="files")
    source.key_by("b").aggregate(rows=Count()).collect()
    source.map(len).collect()
    assert operators(program.translated(env), "files")[0].schema.names == ["a", "b", "c", "d"]


class Passing(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        out.collect((self.key, record.a))


class PassingOneByOne(Passing):
    compiled = False


def test_a_file_that_only_compiled_operators_read_comes_in_larger_batches_and_whole(
    env: StreamEnvironment, program: Any, files: str
) -> None:
    env.from_parquet(files, name="files").key_by("d").process(Passing).collect()
    found = operators(program.translated(env), "files")[0]
    assert found.schema.names == ["a", "b", "c", "d"]
    usual = env.graph.nodes[0].operator
    assert isinstance(usual, FileSource)
    assert found.batch_rows > usual.batch_rows


@pytest.mark.parametrize(("operator", "is_larger"), [(Passing, True), (PassingOneByOne, False)])
def test_so_does_one_whose_event_times_are_a_column(
    env: StreamEnvironment, program: Any, files: str, operator: type[KeyedOperator], is_larger: bool
) -> None:
    timed = env.from_parquet(files, name="files").assign_timestamps("a", bounded_out_of_orderness(1_000))
    timed.key_by("d").process(operator).collect()
    usual = env.graph.nodes[0].operator
    assert isinstance(usual, FileSource)
    assert (operators(program.translated(env), "files")[0].batch_rows > usual.batch_rows) is is_larger


def test_a_reader_that_is_not_compiled_keeps_batches_small(env: StreamEnvironment, program: Any, files: str) -> None:
    source = env.from_parquet(files, name="files")
    source.key_by("d").process(Passing).collect()
    source.key_by("d").process(PassingOneByOne).collect()
    usual = env.graph.nodes[0].operator
    assert isinstance(usual, FileSource)
    assert operators(program.translated(env), "files")[0].batch_rows == usual.batch_rows


def timed(env: StreamEnvironment, files: str) -> DataStream:
    return env.from_parquet(files, name="files").assign_timestamps("d", monotonous())


def test_windows_over_columns_have_a_phase_before_the_shuffle(env: StreamEnvironment, program: Any, files: str) -> None:
    windows = timed(env, files).key_by("b").window(sliding(20, 10))
    windows.aggregate(rows=Count(), total=Sum("a"), name="windows").collect(name="out")
    assert program.shape(env)[0] == ["files -> assign-timestamps-1 -> windows-local x2", "windows -> out x2"]
    found = operators(program.translated(env), "files")[0]
    assert found.schema.names == ["a", "b", "d"], "and its files are read for the columns that count, and the time"


def test_windows_whose_late_records_are_wanted_have_one_phase(env: StreamEnvironment, program: Any, files: str) -> None:
    counted = timed(env, files).key_by("b").window(tumbling(10)).aggregate(rows=Count(), name="windows")
    counted.collect(name="out")
    counted.late.collect(name="late")
    assert "windows-local" not in str(program.shape(env))
    assert operators(program.translated(env), "files")[0].schema.names == ["a", "b", "c", "d"]


def test_sessions_have_one_phase_and_read_what_they_need(env: StreamEnvironment, program: Any, files: str) -> None:
    timed(env, files).key_by("b").window(session(10)).aggregate(rows=Count(), name="sessions").collect(name="out")
    assert program.shape(env)[0] == ["files -> assign-timestamps-1 x2", "sessions -> out x2"]
    assert operators(program.translated(env), "files")[0].schema.names == ["b", "d"]


def test_sessions_with_keys_by_position_read_all_columns(env: StreamEnvironment, program: Any, files: str) -> None:
    timed(env, files).key_by(1).window(session(10)).aggregate(rows=Count()).collect()
    assert operators(program.translated(env), "files")[0].schema.names == ["a", "b", "c", "d"]


def test_windows_with_a_trigger_of_their_own_take_records(env: StreamEnvironment, program: Any, files: str) -> None:
    windows = timed(env, files).key_by("b").window(tumbling(10)).trigger(count(2))
    windows.aggregate(rows=Count(), name="windows").collect(name="out")
    assert isinstance(operators(program.translated(env), "windows")[0], WindowOperator)


def test_without_numba_the_error_is_that_of_the_extra(env: StreamEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one of the input's columns."""
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(NumbaMissing, match=r"needs Numba: pip install 'understudy\[compiled\]'"):
        env.from_arrow(pa.table({"a": [1]})).key_by("a").process(Passing)
