"""Names that there are not: of arguments, and of methods of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    Avg,
    FileSink,
    FoldingState,
    ListState,
    LocalCluster,
    MapState,
    OutputTag,
    ReducingState,
    StreamEnvironment,
    Ttl,
    ValueState,
    count_window,
    cumulative,
    fixed_delay,
    sliding,
    tumbling,
)
from understudy.runtime.api.elsewhere import OF_CONNECTED, OF_ENVIRONMENTS, OF_STREAMS, OF_WINDOWS


def test_a_misspelt_setting_of_an_environment_gets_the_nearest_one() -> None:
    text = "^StreamEnvironment has no argument 'checkpoint_interval'; did you mean 'checkpoint_interval_ms'. There are "
    with pytest.raises(TypeError, match=text + "parallelism, "):
        StreamEnvironment(checkpoint_interval=500)  # type: ignore[call-arg]


def test_a_misspelt_option_of_an_operator_gets_the_nearest_one() -> None:
    text = "^map has no argument 'paralellism'; did you mean 'parallelism'. There are function, name, parallelism, "
    with pytest.raises(TypeError, match=text):
        StreamEnvironment().from_collection([1]).map(str, paralellism=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proces", "a DataStream has no 'proces'; did you mean 'process'"),
        ("window", "window needs a keyed stream: call key_by"),
        ("xyzzy", "a DataStream has no 'xyzzy'$"),
        ("close_with", r"a DataStream has no 'close_with': write iterate\(step\), whose function returns"),
        ("sum", r"has no 'sum': write key_by\(...\).aggregate\(sum=Sum\(\"column\"\)\)"),
        ("add_sink", r"has no 'add_sink': write sink_to\(...\)"),
        ("addSink", r"has no 'addSink': write sink_to\(...\)"),
        ("keyBy", "has no 'keyBy'; did you mean 'key_by'"),
        ("groupBy", r"has no 'groupBy': write key_by\(...\)"),
        ("withColumn", r"has no 'withColumn': write map\(lambda row: \{\*\*row, 'name': value\}\)"),
        ("orderBy", "has no 'orderBy': a stream has no end to sort at"),
        ("toPandas", r"has no 'toPandas': .* job.to_pandas\('rows'\)"),
    ],
)
def test_a_misspelt_method_of_a_stream_gets_the_nearest_one(name: str, said: str) -> None:
    stream: Any = StreamEnvironment().from_collection([1])
    with pytest.raises(AttributeError, match=said):
        getattr(stream, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("execute", r"a StreamEnvironment has no 'execute': write `with LocalCluster\(\) as cluster: cluster.submit"),
        ("enable_checkpointing", r"write StreamEnvironment\(checkpoint_interval_ms="),
        ("read_csv", r"write from_csv\(\.\.\.\) in its place"),
        ("iterate", "a StreamEnvironment has no 'iterate': it is a method of the stream"),
        ("from_colection", "did you mean 'from_collection'"),
        ("xyzzy", "a StreamEnvironment has no 'xyzzy'$"),
    ],
)
def test_a_name_of_flink_or_spark_on_an_environment_gets_what_is_written_here(name: str, said: str) -> None:
    env: Any = StreamEnvironment()
    with pytest.raises(AttributeError, match=said):
        getattr(env, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("side_output_late_data", r"a window has no 'side_output_late_data': .* windows.aggregate\(\.\.\.\).late$"),
        ("sideOutputLateData", r"\.late$"),
        ("apply", r"write process\(function\) in its place, with a function of \(key, window, records, out\)$"),
        ("max_by", r"write reduce\(lambda one, other: max\(one, other, key=\.\.\.\)\) in its place$"),
        ("collect", "say what becomes of its records first, with aggregate, reduce or process$"),
    ],
)
def test_a_name_of_flink_on_windows_gets_what_is_written_here(name: str, said: str) -> None:
    windows: Any = keyed().window(tumbling(minutes=1))
    with pytest.raises(AttributeError, match=said):
        getattr(windows, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("flatMap", r"connected streams have no 'flatMap': write process\(.* `inputs = 2`"),
        ("keyBy", r"no 'keyBy': key both before: first.key_by\(\.\.\.\).connect"),
    ],
)
def test_a_name_of_flink_on_connected_streams_gets_what_is_written_here(name: str, said: str) -> None:
    stream = keyed()
    both: Any = stream.connect(stream)
    with pytest.raises(AttributeError, match=said):
        getattr(both, name)


def test_what_stands_in_place_of_a_name_of_elsewhere_is_there_and_the_name_is_not() -> None:
    env = StreamEnvironment()
    keyed = env.from_collection([{"a": 1}]).key_by("a")
    windows, both = keyed.window(tumbling(minutes=1)), keyed.connect(keyed)
    tables = (OF_ENVIRONMENTS, OF_STREAMS, OF_WINDOWS, OF_CONNECTED)
    for thing, elsewhere in zip((env, keyed, windows, both), tables, strict=True):
        for name, text in elsewhere.items():
            assert name not in dir(thing), name
            for called in re.findall(r"write (\w+)\(", text):
                assert called in dir(thing) or called == "StreamEnvironment", text


def keyed() -> Any:
    return StreamEnvironment().from_collection([{"a": 1, "at": 5}]).key_by("a")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: keyed().collect("out"), r"^collect takes no argument without its name: write collect\(name='out'\)$"),
        (
            lambda: keyed().print("> ", "out"),
            r"^print takes 1 argument without .* \(prefix\).* print\(..., name='out'\)$",
        ),
        (lambda: keyed().bulk_iterate(str, 3), r"\(step\): write bulk_iterate\(..., max_rounds=3\)$"),
        (lambda: keyed().map(str, 4), r"^map takes 1 argument .* \(function\): write map\(..., parallelism=4\)$"),
        (lambda: keyed().broadcast([1]), r"^broadcast takes no arguments, found \[1\]$"),
        (
            lambda: keyed().reduce(max, [1]),
            r"^reduce takes 1 argument .* \(function\), found a second, \[1\]. There are ",
        ),
        (lambda: keyed().aggregate("end", "out"), r"write aggregate\(..., name='out'\)$"),
        (lambda: keyed().map(), r"^map: function is missing: write map\(function\)$"),
        (
            lambda: keyed().assign_timestamps("at"),
            r"watermarks is missing: .*\(\"at\", bounded_out_of_orderness\(5_000",
        ),
        (lambda: keyed().window(), r"^window: assigner is missing: write window\(tumbling\(minutes=1\)\)$"),
        (lambda: keyed().top_n(3), r"^top_n: by is missing: write top_n\(n, by\)$"),
        (lambda: keyed().connect(), r"^connect: other is missing: write connect\(other\)$"),
        (lambda: keyed().to_kafka("topic"), r"^to_kafka: bootstrap_servers is missing: write to_kafka\(topic, boot"),
        (
            lambda: keyed().to_kafka("topic", "host", guarante="x"),
            r"^to_kafka has no argument 'guarante'; did you mean",
        ),
        (lambda: keyed().key_by("a", name="k"), r"^key_by has no argument 'name'. There are keys"),
        (lambda: keyed().window(tumbling(ms=1)).process(max, nam="w"), r"^process has no argument 'nam'; did you mean"),
    ],
)
def test_a_call_of_a_stream_that_python_would_refuse_says_how_to_write_it(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda env: env.generate(str, rate=3), r"^generate has no argument 'rate': write records_per_second=...$"),
        (lambda env: env.generate(count=3), r"^generate: function is missing: write generate\(function\)$"),
        (
            lambda env: env.from_collection([1], rate=3),
            r"^from_collection .* 'rate': write records_per_second=",
        ),
        (
            lambda env: env.from_collection(1, [2]),
            r"^from_collection takes 1 argument without its name \(items\), found",
        ),
        (
            lambda env: env.from_collection(1, 2, 3),
            r"^from_collection takes .*found a second, 2\. .*: write from_collection\(\[1, 2, 3\]\)$",
        ),
        (lambda env: env.from_csv("a", sep=";"), r"^from_csv has no argument 'sep': write delimiter=';'$"),
        (
            lambda env: env.from_csv("a", header=None),
            r"^from_csv .* 'header': the first line of the file names the col",
        ),
        (
            lambda env: env.from_csv("a", usecols=["b"]),
            r"^from_csv has no argument 'usecols': write columns=\[\.\.\.\]$",
        ),
        (
            lambda env: env.from_csv("a", dtype={"b": str}),
            r"^from_csv .* 'dtype': write schema=pa\.schema\(\{'zip': pa\.s",
        ),
        (lambda env: env.from_csv(), r"^from_csv: path is missing: write from_csv\(path\)$"),
        (lambda env: env.from_inlet(), r"^from_inlet: name is missing"),
        (
            lambda env: env.from_kafka("topic", "host", formt="json"),
            r"^from_kafka has no argument 'formt'; did you mean",
        ),
    ],
)
def test_a_call_of_an_environment_that_python_would_refuse_says_how_to_write_it(
    call: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        call(StreamEnvironment())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: sliding(seconds=5),  # type: ignore[call-arg]
            r"^sliding has no argument 'seconds'. .*write sliding\(timedelta\(minutes=10\), time",
        ),
        (
            lambda: sliding(5),  # type: ignore[call-arg]
            r"^sliding: slide is missing: write sliding\(timedelta\(minutes=10\), timedelta\(minutes=1",
        ),
        (lambda: cumulative(minutes=1), r"^cumulative has no argument 'minutes'. .*write cumulative\(timedelta\("),  # type: ignore[call-arg]
        (lambda: count_window(), r"^count_window: size is missing: write count_window\(size\)$"),  # type: ignore[call-arg]
        (lambda: tumbling(1, 2), r"^tumbling takes 1 argument without its name \(size\), found a second, 2. There are"),
        (
            lambda: ValueState(int, defaut=0),
            r"^ValueState has no argument 'defaut'; did you mean 'default'\? There are",
        ),
        (lambda: ValueState(), r"^ValueState: type is missing: write ValueState\(int, default=0\)$"),
        (lambda: ListState(int, default=0), r"^ListState has no argument 'default'. There are type, name"),  # type: ignore[call-arg]
        (lambda: MapState(str), r"^MapState: value_type is missing: write MapState\(str, int\)$"),  # type: ignore[call-arg]
        (lambda: ReducingState(int), r"^ReducingState: reduce is missing: write ReducingState\(int, max\)$"),  # type: ignore[call-arg]
        (lambda: FoldingState(list), r"^FoldingState: initial and fold are missing: write FoldingState\("),  # type: ignore[call-arg]
        (lambda: Ttl(clok="event", hours=1), r"Ttl.*clok.*"),  # type: ignore[call-arg]
        (lambda: OutputTag(), r"^OutputTag: name is missing: write OutputTag\(name\)$"),  # type: ignore[call-arg]
        (lambda: Avg(), r"^Avg: column is missing: write Avg\(column\)$"),  # type: ignore[call-arg]
        (lambda: FileSink(), r"^FileSink: path is missing: write FileSink\(path\)$"),  # type: ignore[call-arg]
        (lambda: FileSink("out", fmt="csv"), r"^FileSink has no argument 'fmt'.* There are path, .*, shared$"),  # type: ignore[call-arg]
        (lambda: fixed_delay(), r"^fixed_delay: attempts is missing: write fixed_delay\(attempts\)$"),  # type: ignore[call-arg]
    ],
)
def test_what_is_made_with_arguments_that_python_would_refuse_says_how_to_write_it(
    call: Callable[[], Any], said: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_an_argument_of_a_method_of_the_users_own_stays_pythons_own_error() -> None:
    class Own(FileSink):
        def __init__(self, path: str, limit: int) -> None:
            super().__init__(path)

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'limit'"):
        Own("out")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("workers", r"LocalCluster has no argument 'workers': write task_managers=\.\.\."),
        ("n_workers", r"write task_managers=\.\.\."),
        ("threads_per_worker", r"write slots_per_task_manager=\.\.\."),
        ("dashboard_address", "write web_port=8081 for the page"),
        ("parallelism", r"it is the program's: write StreamEnvironment\(parallelism="),
        ("checkpoint_dir", r"it is the program's: write StreamEnvironment\(checkpoint_dir="),
        ("name", r"a job has one: write cluster.submit\(env, name="),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_a_setting_of_other_clusters_gets_what_it_is_called_here(name: str, said: str, debug: bool) -> None:
    make: Any = LocalCluster
    with pytest.raises(TypeError, match=said):
        make(**{name: 4}, **({"debug": True} if debug else {}))
