"""What is wrong with a program is told where it is written, naming the operator."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from understudy import FileSink
from understudy.actors.operators.aggregate import Sum
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.messages import row_type
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import (
    DuplicateName,
    ForeignStream,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    SchemaMismatch,
    UnknownColumn,
)
from understudy.state import InvalidState, ValueState


@dataclass
class Flight:
    origin: str
    delay: int

    @property
    def route(self) -> str:
        return self.origin


class FlightTuple(NamedTuple):
    origin: str
    delay: int


class Empty(Operator): ...


class EmptyKeyed(KeyedOperator): ...


class Misplaced(Operator):
    def process(self, key: str, record: Any, out: Collector) -> None: ...


class Yielding(Operator):
    def process(self, record: Any, out: Collector) -> Any:
        yield record


class OneOfWholeBatches(Operator):
    takes = "columns"

    def process(self, record: Any, out: Collector) -> None: ...


class CompiledWithoutAKey(Operator):
    compiled = True

    def process(self, record: Any, out: Collector) -> None: ...


class OneEared(KeyedOperator):
    inputs = 2

    def process(self, record: Any, out: Collector) -> None: ...


class Unfinished(Operator, abc.ABC):
    @abc.abstractmethod
    def rule(self) -> None: ...


class Demanding(Operator):
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def process_batch(self, batch: Any, out: Collector) -> None: ...


class Picky(Operator):
    """A sink that wants a column `total`."""

    def process_batch(self, batch: Any, out: Collector) -> None: ...

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        if inputs[0] is not None and "total" not in inputs[0].names:
            raise ValueError(f"wanted a column total, found {', '.join(inputs[0].names)}")
        return None


class TestNames:
    def test_default_names_are_kebab_case_and_counted(self, env: StreamEnvironment, program: Any) -> None:
        stream = env.from_collection([1]).map(str).map(str).flat_map(list)
        stream.key_by(0).process(program.Worst).sink_to(program.Swallow)
        names = [node.name for node in env.graph.nodes]
        assert names == ["collection-source-1", "map-1", "map-2", "flat-map-1", "worst-1", "swallow-1"]

    def test_a_default_name_steps_aside_for_one_that_is_taken(self, env: StreamEnvironment) -> None:
        assert env.from_collection([1]).map(str, name="map-1").map(str)._own_node().name == "map-2"

    def test_two_operators_of_one_name(self, env: StreamEnvironment) -> None:
        stream = env.from_collection([1]).map(str, name="parse")
        with pytest.raises(DuplicateName, match=r"'parse' is taken by another operator, the map of"):
            stream.filter(bool, name="parse")
        with pytest.raises(DuplicateName, match="'parse' is taken"):
            stream.filter(bool).uid("parse")

    def test_a_name_is_text(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidSetting, match="name: wanted a non-empty string, found ''"):
            env.from_collection([1], name="")

    def test_a_union_has_no_name(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidProgram, match="a union has no operator of its own"):
            env.from_collection([1]).union(env.from_collection([2])).name("both")

    def test_an_unknown_option_is_refused(self, env: StreamEnvironment) -> None:
        with pytest.raises(TypeError, match="paralellism"):
            env.from_collection([1]).map(str, paralellism=2)  # type: ignore[call-arg]

    @pytest.mark.parametrize("parallelism", [0, -1, 1.5, True, "2"])
    def test_a_bad_parallelism(self, env: StreamEnvironment, parallelism: Any) -> None:
        with pytest.raises(InvalidSetting, match=r"parallelism of 'map-1': wanted an integer of at least 1, found"):
            env.from_collection([1]).map(str, parallelism=parallelism)


class TestOperators:
    @pytest.mark.parametrize(
        ("operator", "message"),
        [
            (Empty, r"Empty does not define process_batch\(self, batch, out\)"),
            (
                Misplaced,
                r"Misplaced\.process cannot be called with \(record, out\).*`def process\(self, record, out\)`",
            ),
            (Yielding, r"Yielding\.process is a generator.*out\.collect"),
            (OneOfWholeBatches, "`takes = 'columns'` asks for whole batches: take that out, or define process_batch"),
            (CompiledWithoutAKey, "`compiled = True` is for a KeyedOperator"),
            (Unfinished, "Unfinished is abstract: it does not define rule"),
            (Demanding, "Demanding cannot be made without arguments .*: give an instance"),
            (dict, "wanted a subclass of Operator, found the class dict"),
            (len, "found a builtin_function_or_method: for a plain function use map"),
            (None, "wanted a subclass or an instance of Operator, found a NoneType"),
        ],
    )
    def test_not_a_complete_operator(self, env: StreamEnvironment, operator: Any, message: str) -> None:
        with pytest.raises(InvalidOperator, match=message):
            env.from_collection([1]).process(operator)

    def test_an_instance_takes_arguments(self, env: StreamEnvironment) -> None:
        env.from_collection([1]).process(Demanding(3))

    def test_a_keyed_operator_needs_a_key(self, env: StreamEnvironment, program: Any) -> None:
        with pytest.raises(InvalidOperator, match="Worst is a KeyedOperator and needs a keyed stream"):
            env.from_collection([1]).process(program.Worst)

    def test_a_keyed_operator_needs_process(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidOperator, match=r"EmptyKeyed does not define process\(self, record, out\)"):
            env.from_collection([1]).key_by(0).process(EmptyKeyed)

    def test_keyed_state_needs_a_keyed_operator(self, env: StreamEnvironment) -> None:
        body = {"seen": ValueState(int, default=0), "process_batch": lambda self, batch, out: None}
        with pytest.raises(InvalidState, match=r"Counts.seen is keyed state, and this operator has no key: subclass"):
            env.from_collection([1]).key_by(0).process(type("Counts", (Operator,), body))

    def test_a_misspelt_method_is_named(self, env: StreamEnvironment) -> None:
        keyed = type("Keyed", (KeyedOperator,), {"proces": lambda self, record, out: None})
        with pytest.raises(InvalidOperator, match=r"does not define process\(.*; it defines proces: rename it"):
            env.from_collection([1]).key_by(0).process(keyed)
        batched = type("Batched", (Operator,), {"process_bacth": lambda self, batch, out: None})
        with pytest.raises(InvalidOperator, match=r"process_batch\(.*; it defines process_bacth: rename it"):
            env.from_collection([1]).process(batched)

    @pytest.mark.parametrize(
        ("base", "names", "said"),
        [
            (
                KeyedOperator,
                ["process_element2", "process_element1"],
                r"process\(.*defines process_element1: rename it",
            ),
            (KeyedOperator, ["process", "processElement2"], r"process_2\(.*; it defines processElement2: rename it"),
            (KeyedOperator, ["flatMap1", "flatMap2"], r"; it defines flatMap1: rename it, and emit with out.collect"),
            (Operator, ["process_element"], r"rename it to process\(record, out\), and emit with out.collect"),
        ],
    )
    def test_a_method_of_flink_is_named_with_what_it_is_here(
        self, base: type[Operator], names: list[str], said: str, env: StreamEnvironment
    ) -> None:
        """The one of the same input: `process_element2` is more like `process`, and takes the other stream."""
        is_keyed = base is KeyedOperator
        kind = type(
            "Own", (base,), {"inputs": 1 + is_keyed, **{name: lambda self, record, out: None for name in names}}
        )
        stream = env.from_collection([1]).key_by(0) if is_keyed else env.from_collection([1])
        with pytest.raises(InvalidOperator, match=said):
            stream.connect(stream).process(kind) if is_keyed else stream.process(kind)

    def test_a_coroutine_of_flink_is_named_as_one(self, env: StreamEnvironment) -> None:
        class Fetch(Operator):
            async def async_invoke(self, record: Any) -> None: ...

        with pytest.raises(
            InvalidOperator, match=r"it defines async_invoke: write `async def process\(self, record, out\)`"
        ):
            env.from_collection([1]).process(Fetch)

    @pytest.mark.parametrize(
        ("name", "meant"), [("on_ends", "on_end"), ("on_timers", "on_timer"), ("on_order", ""), ("on_end", "")]
    )
    def test_a_hook_that_seems_to_be_misspelt_is_warned_of(
        self, env: StreamEnvironment, name: str, meant: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        body = {"process": lambda self, record, out: None, name: lambda self, out: None}
        env.from_collection([1]).key_by(0).process(type("Keyed", (KeyedOperator,), body))
        said = [each for each in caplog.messages if "is called by nothing here" in each]
        assert len(said) == bool(meant)
        assert all(f"Keyed.{name} " in each and f"is {meant} meant?" in each for each in said)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("end", "on_end(out), at the end of the data"),
            ("setup", "open()"),
            ("onClose", "close()"),
            ("process_element", "process(record, out)"),
            ("snapshot_state", "on_checkpoint(checkpoint_id)"),
            ("on_start", "open()"),
            ("on_stop", "close()"),
            ("start_bundle", "open(), or the first line of process_batch(batch, out),"),
        ],
    )
    def test_a_hook_of_another_library_is_warned_of_unless_the_operator_calls_it(
        self, env: StreamEnvironment, name: str, meant: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Calling(KeyedOperator):
            def process(self, record: Any, out: Collector) -> None:
                self.end(out)  # type: ignore[attr-defined]
                self.setup(), self.onClose(), self.process_element(), self.snapshot_state()  # type: ignore[attr-defined]
                self.on_start(), self.on_stop(), self.start_bundle()  # type: ignore[attr-defined]

        body = {name: lambda self, *_: None}
        env.from_collection([1]).key_by(0).process(type("Calls", (Calling,), body))
        assert caplog.messages == []
        env.from_collection([1]).key_by(0).process(type("Other", (KeyedOperator,), {**body, "process": _process}))
        (said,) = caplog.messages
        assert said.startswith(f"Other.{name} is called by nothing here; is {meant} meant?")

    @pytest.mark.parametrize("name", ["process_element", "processElement"])
    def test_process_element_beside_a_process_batch_is_warned_of_without_a_key_too(
        self, env: StreamEnvironment, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def batch(self: Any, records: Any, out: Collector) -> None: ...

        def calling(self: Any, records: Any, out: Collector) -> None:
            for record in records:
                self.process_element(record, out), self.processElement(record, out)

        body = {name: lambda self, record, out: None}
        env.from_collection([1]).process(type("Calls", (Operator,), {**body, "process_batch": calling}))
        assert caplog.messages == []
        env.from_collection([1]).process(type("Plain", (Operator,), {**body, "process_batch": batch}))
        (said,) = caplog.messages
        meant = "process(record, out), in place of process_batch,"
        assert said.startswith(f"Plain.{name} is called by nothing here; is {meant} meant?")

    @pytest.mark.parametrize("name", ["process_2", "process_batch_2"])
    def test_a_method_for_a_second_input_that_there_is_not_is_warned_of(
        self, env: StreamEnvironment, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Two(KeyedOperator):
            inputs = 2

        class Calling(KeyedOperator):
            def process(self, record: Any, out: Collector) -> None:
                self.process_2(record, out), self.process_batch_2([record], out)

        body = {name: lambda self, record, out: None}
        for base in (Two, Calling):
            fine = type("Fine", (base,), {"process": _process, **body, "inputs": 1} if base is Two else body)
            env.from_collection([1]).key_by(0).process(fine)
        assert caplog.messages == []
        env.from_collection([1]).key_by(0).process(type("One", (KeyedOperator,), {**body, "process": _process}))
        (said,) = caplog.messages
        assert said.startswith(f"One.{name} is called by nothing here; is `inputs = 2` in the class, with first.conn")

    @pytest.mark.parametrize("base", [Operator, KeyedOperator, FileSink])
    def test_a_process_that_a_batch_method_stands_before_is_warned_of(
        self, env: StreamEnvironment, base: type[Operator], caplog: pytest.LogCaptureFixture
    ) -> None:
        def whole(self: Any, batch: Any, out: Collector) -> None: ...

        def each(self: Any, batch: Any, out: Collector) -> None:
            for record in batch:
                self.process(record, out)

        def on(self: Any, batch: Any, out: Collector) -> None:
            base.process_batch(self, batch, out)

        def put(kind: Any) -> None:
            stream = env.from_collection([1]).key_by(0) if base is KeyedOperator else env.from_collection([1])
            stream.process(kind if base is not FileSink else kind("out"))

        fine = [each] if base is FileSink else [each, on]
        for method in fine:
            between: Any = type("Between", (base,), {"process_batch": method})
            put(type("Mine", (between,), {"process": _process}))
        assert caplog.messages == []
        between = base if base is FileSink else type("Between", (base,), {"process_batch": whole})
        put(type("Mine", (between,), {"process": _process}))
        (said,) = caplog.messages
        assert said.startswith("Mine.process is called by nothing here; is process_batch(batch, out), which ")

    def test_a_source_is_no_operator_and_no_sink(self, env: StreamEnvironment, program: Any) -> None:
        for method in ("process", "sink_to"):
            with pytest.raises(InvalidOperator, match="Flights is a source and takes no input"):
                getattr(env.from_collection([1]), method)(program.Flights)

    def test_map_wants_a_function(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidOperator, match="map: wanted a function, found an int 3"):
            env.from_collection([1]).map(3)  # type: ignore[arg-type]
        with pytest.raises(InvalidOperator, match=r"map: wanted a function, found the operator Empty: use process"):
            env.from_collection([1]).map(Empty)


def _process(self: Any, record: Any, out: Collector) -> None:
    out.collect(record)


class TestConnect:
    def test_both_are_keyed_or_neither(self, env: StreamEnvironment) -> None:
        first, second = env.from_collection([1]), env.from_collection([2])
        with pytest.raises(InvalidProgram, match="the second stream is keyed, the other not"):
            first.connect(second.key_by(0))

    def test_the_operator_declares_two_inputs(self, env: StreamEnvironment, program: Any) -> None:
        keyed = env.from_collection([1]).key_by(0)
        with pytest.raises(InvalidOperator, match="Worst takes one input; for connected streams"):
            keyed.connect(keyed).process(program.Worst)
        with pytest.raises(InvalidOperator, match=r"Meet takes two inputs: use first\.connect"):
            keyed.process(program.Meet)

    def test_process_2_is_defined(self, env: StreamEnvironment) -> None:
        keyed = env.from_collection([1]).key_by(0)
        with pytest.raises(InvalidOperator, match=r"OneEared does not define process_2\(self, record, out\)"):
            keyed.connect(keyed).process(OneEared)

    @pytest.mark.parametrize("method", ["union", "connect"])
    def test_streams_of_two_environments(self, env: StreamEnvironment, method: str) -> None:
        other = StreamEnvironment().from_collection([2])
        with pytest.raises(ForeignStream, match=f"{method}: the streams belong to different environments"):
            getattr(env.from_collection([1]), method)(other)
        with pytest.raises(InvalidProgram, match=rf"{method}: wanted a DataStream, found \[2\]"):
            getattr(env.from_collection([1]), method)([2])


class TestColumns:
    def test_key_by_checks_names_and_positions(self, env: StreamEnvironment, program: Any) -> None:
        flights = env.from_source(program.Flights())
        flights.key_by("origin", 2)
        with pytest.raises(
            UnknownColumn, match=r"there is no column 'orign'; the stream has origin, dep_delay, dist.* mean 'origin'"
        ):
            flights.key_by("orign")
        with pytest.raises(UnknownColumn, match="there is no column number 3"):
            flights.key_by(3)

    @pytest.mark.parametrize("keys", [(), (None,), (True,)])
    def test_key_by_wants_columns_or_one_function(self, env: StreamEnvironment, keys: tuple[Any, ...]) -> None:
        with pytest.raises(InvalidProgram, match=r"key_by: wanted column names, positions or (a|one) function, found"):
            env.from_collection([1]).key_by(*keys)

    @pytest.mark.parametrize(
        ("key", "said"),
        [
            ("place", r"column 'place' is of type struct<.*key_by\(lambda row: row\['place'\]\['field'\]\)"),
            ("tags", r"column 'tags' is of type list<.*key_by\(lambda row: tuple\(row\['tags'\]\)\)"),
            (1, r"column 1 is of type list<"),
            ("place.city", r"no column 'place.city'; a part of .* key_by\(lambda row: row\['place'\]\['city'\]\)"),
            ("tags.city", r"no column 'tags.city'; the stream has place, tags"),
        ],
    )
    def test_key_by_says_how_to_take_a_part_of_a_column(self, env: StreamEnvironment, key: Any, said: str) -> None:
        rows = env.from_arrow(pa.table({"place": [{"city": "Ulm"}], "tags": [["a"]]}))
        with pytest.raises(InvalidProgram, match=said):
            rows.key_by(key)

    @pytest.mark.parametrize(
        "record",
        [
            {"origin": "JFK", "delay": 1},
            Flight("JFK", 1),
            FlightTuple("JFK", 1),
            row_type(("origin", "delay"))("JFK", 1),
        ],
        ids=["dict", "dataclass", "named tuple", "row"],
    )
    def test_key_by_checks_the_records_of_a_collection(self, env: StreamEnvironment, record: Any) -> None:
        records = env.from_collection([record] * 3, name="flights")
        records.key_by("origin", "delay")
        wanted = r"there is no 'orgin' in record 0 of 'flights'; it has origin, delay; did you mean 'origin'\?"
        with pytest.raises(UnknownColumn, match=wanted):
            records.key_by("delay", "orgin")
        with pytest.raises(UnknownColumn, match=wanted):
            records.union(env.from_collection([record])).key_by("orgin")

    def test_key_by_names_the_first_record_that_lacks_the_key(self, env: StreamEnvironment) -> None:
        records = [{"origin": "JFK"}] * 7 + [{"orgin": "JFK"}]
        with pytest.raises(UnknownColumn, match="'origin' in record 7 of 'collection-source-1'; it has orgin"):
            env.from_collection(records).key_by("origin")

    def test_key_by_reads_attributes_that_are_no_fields(self, env: StreamEnvironment) -> None:
        env.from_collection([Flight("JFK", 1)]).key_by("route")

    @pytest.mark.parametrize("records", [[], [3], [{"a": 1}, 3], [("JFK", 1)]], ids=repr)
    def test_other_records_have_no_names_to_check(self, env: StreamEnvironment, records: list[Any]) -> None:
        env.from_collection(records).key_by("whatever")

    def test_what_follows_a_collection_has_records_of_its_own(self, env: StreamEnvironment) -> None:
        env.from_collection([{"a": 1}]).map(lambda record: {"b": 1}).key_by("b")

    def test_aggregate_checks_its_columns(self, env: StreamEnvironment, program: Any) -> None:
        flights = env.from_source(program.Flights()).key_by("origin")
        with pytest.raises(SchemaMismatch, match=r"operator 'aggregate-1' \(ColumnarAggregate\) .*miles"):
            flights.aggregate(total=Sum("miles"))
        with pytest.raises(SchemaMismatch, match=r"Sum\('distanc'\): .*, distance.*; did you mean 'distance'\?"):
            flights.aggregate(total=Sum("distanc"))

    def test_aggregate_is_keyed_by_columns(self, env: StreamEnvironment) -> None:
        with pytest.raises(InvalidProgram, match="aggregate: wanted a stream that is keyed by column names, found the"):
            env.from_collection([1]).key_by(lambda record: record).aggregate(total=Sum("miles"))

    def test_aggregate_needs_something_to_compute(self, env: StreamEnvironment, program: Any) -> None:
        with pytest.raises(InvalidProgram, match="aggregate: wanted at least one aggregate"):
            env.from_source(program.Flights()).key_by("origin").aggregate()

    def test_a_sink_refuses_columns_that_do_not_fit(self, env: StreamEnvironment, program: Any) -> None:
        flights = env.from_source(program.Flights())
        with pytest.raises(SchemaMismatch, match=r"'picky-1' \(Picky\) .*wanted a column total, found origin"):
            flights.sink_to(Picky())

    def test_a_declared_schema_flows_on(self, env: StreamEnvironment, program: Any) -> None:
        declared = pa.schema([("total", pa.int64())])
        stream = env.from_source(program.Flights()).map_batches(lambda batch: batch, schema=declared)
        assert stream.schema == declared
        stream.sink_to(Picky())
        with pytest.raises(InvalidSetting, match=r"schema: wanted a pyarrow\.Schema, as in .*, found a dict"):
            env.from_source(program.Flights()).process(program.Swallow, schema={"a": 1})

    def test_a_filter_keeps_the_columns_and_a_map_does_not(self, env: StreamEnvironment, program: Any) -> None:
        flights = env.from_source(program.Flights())
        assert flights.filter(bool).schema == program.FLIGHTS
        assert flights.map(str).schema is None

    def test_a_union_wants_equal_columns(self, env: StreamEnvironment, program: Any) -> None:
        flights = env.from_source(program.Flights())
        assert flights.union(env.from_source(program.Flights())).schema == program.FLIGHTS
        assert flights.union(env.from_collection([1])).schema is None
        other = env.from_source(program.Flights(pa.schema([("origin", pa.int64())])))
        with pytest.raises(SchemaMismatch, match=r"union: the streams have different columns: origin string, .*int64"):
            flights.union(other)
