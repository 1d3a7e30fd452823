"""Typical programs become these JobGraphs. Flink: StreamingJobGraphGeneratorTest."""

from __future__ import annotations

import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from understudy import IdempotentSink, ListState
from understudy.messages import JobId, Partitioning, register_serializer
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import ClusterTooSmall, InvalidOperator, InvalidProgram, NoSink, NotPicklable
from understudy.state.keyring import VARIABLE, add_key


class _DataFrame:
    """As much of a Spark DataFrame as the API looks at."""

    def __init__(self) -> None:
        self.schema = pytest.importorskip("pyspark.sql.types").StructType()


def test_operators_without_a_shuffle_between_them_are_one_vertex(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1], name="numbers", parallelism=2).map(str, name="text").filter(bool).sink_to(
        program.Swallow, name="out"
    )
    assert program.shape(env) == (["numbers -> text -> filter-1 -> out x2"], [])


def test_key_by_starts_a_new_vertex_behind_a_hash_edge(env: StreamEnvironment, program: Any) -> None:
    env.from_source(program.Flights(), name="flights").key_by("origin").process(program.Worst).sink_to(program.Swallow)
    assert program.shape(env) == (
        ["flights x2", "worst-1 -> swallow-1 x2"],
        ["flights =hash=> worst-1"],
    )


def test_another_parallelism_rebalances(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1], name="a").map(str, name="b", parallelism=2).sink_to(program.Swallow, name="c")
    assert program.shape(env) == (["a x1", "b -> c x2"], ["a =rebalance=> b"])


class _Prices(IdempotentSink):
    key = ("shop", "item")

    def upsert(self, batch: Any) -> None: ...


def _sale(_: int) -> dict[str, Any]:
    return {"shop": 1, "item": 2}


def test_a_sink_of_rows_gets_them_by_key_where_they_are_dealt_out(env: StreamEnvironment, program: Any) -> None:
    sales = env.from_collection([1], name="a").rebalance().map(_sale, name="b", parallelism=2)
    sales.sink_to(_Prices(), name="several", parallelism=3)
    sales.sink_to(_Prices(), name="alike")
    sales.rebalance().sink_to(_Prices(), name="chosen", parallelism=3)
    assert program.shape(env)[1] == [
        "a =rebalance=> b",
        "b =hash=> several",
        "b =forward=> alike",
        "b =rebalance=> chosen",
    ]


def test_a_table_gets_its_rows_by_their_key(env: StreamEnvironment, program: Any) -> None:
    sales = env.from_collection([1], name="a").map(_sale, name="b")
    sales.to_sql("sqlite://", "t", name="append", parallelism=3)
    sales.to_sql("sqlite://", "u", name="ledger", key="shop", parallelism=3)
    sales.to_sql("sqlite://", "v", name="upsert", key="shop", exactly_once=False, parallelism=3)
    assert program.shape(env)[1] == [
        "a =rebalance=> append",
        "a =hash=> ledger",
        "a =hash=> upsert",
    ]


def test_another_slot_sharing_group_is_not_chained_and_is_inherited(env: StreamEnvironment, program: Any) -> None:
    mapped = env.from_collection([1], name="a", parallelism=2).map(str, name="b", slot_sharing_group="heavy")
    mapped.sink_to(program.Swallow, name="c")
    assert program.shape(env) == (["a x2", "b -> c x2"], ["a =forward=> b"])
    groups = [vertex.slot_sharing_group for vertex in program.translated(env).graph.vertices]
    assert groups == ["default", "heavy"]


@pytest.mark.parametrize(
    ("method", "partitioning"), [("rebalance", Partitioning.REBALANCE), ("broadcast", Partitioning.BROADCAST)]
)
def test_an_explicit_partitioning_is_kept(
    env: StreamEnvironment, program: Any, method: str, partitioning: Partitioning
) -> None:
    getattr(env.from_collection([1]), method)().sink_to(program.Swallow)
    (edge,) = program.translated(env).graph.edges
    assert edge.partitioning is partitioning


def test_a_union_is_several_edges_into_one_input(env: StreamEnvironment, program: Any) -> None:
    left, right = env.from_collection([1], name="a", parallelism=2), env.from_collection([2], name="b")
    left.union(right).map(str, name="both").sink_to(program.Swallow, name="out")
    assert program.shape(env) == (["a x2", "b x1", "both -> out x2"], ["a =forward=> both", "b =rebalance=> both"])


def test_a_keyed_union_hashes_every_edge(env: StreamEnvironment, program: Any) -> None:
    left, right = env.from_collection([1], name="a"), env.from_collection([2], name="b")
    left.union(right).key_by(0).process(program.Worst, name="worst").sink_to(program.Swallow)
    translation = program.translated(env)
    assert [edge.partitioning for edge in translation.graph.edges] == [Partitioning.HASH, Partitioning.HASH]
    assert all(translation.program.edge_selector(index) is not None for index in range(2))


def test_connected_streams_feed_two_inputs(env: StreamEnvironment, program: Any) -> None:
    first = env.from_collection([1], name="a", parallelism=2)
    second = env.from_collection([2], name="b", parallelism=2)
    first.key_by(0).connect(second.key_by(0)).process(program.Meet).sink_to(program.Swallow, name="out")
    assert program.shape(env) == (
        ["a x2", "b x2", "meet-1 -> out x2"],
        ["a =hash=> meet-1", "b =hash=> meet-1:2"],
    )
    translation = program.translated(env)
    (meet, _) = translation.program.chain(translation.graph.vertices[2].vertex_id)
    assert len(meet._selectors) == 2


def test_a_diamond_keeps_its_corners_apart(env: StreamEnvironment, program: Any) -> None:
    top = env.from_collection([1], name="top", parallelism=2)
    left, right = top.map(str, name="left"), top.map(str, name="right")
    left.union(right).sink_to(program.Swallow, name="bottom")
    assert program.shape(env) == (
        ["top x2", "left x2", "right x2", "bottom x2"],
        ["top =forward=> left", "top =forward=> right", "left =forward=> bottom", "right =forward=> bottom"],
    )


def test_sources_come_first_and_producers_before_consumers(env: StreamEnvironment, program: Any) -> None:
    early = env.from_collection([1], name="a", parallelism=2).key_by(0).process(program.Worst, name="worst")
    late = env.from_collection([2], name="b", parallelism=2)
    early.union(late).sink_to(program.Swallow, name="out")
    assert program.shape(env)[0] == ["a x2", "b x2", "worst x2", "out x2"]


def test_what_reaches_no_sink_is_left_out_with_a_warning(env: StreamEnvironment, program: Any) -> None:
    source = env.from_collection([1], name="a")
    source.map(str, name="forgotten")
    source.sink_to(program.Swallow, name="out")
    with pytest.warns(UserWarning, match="reach no sink and will not run: forgotten"):
        assert program.shape(env) == (["a -> out x1"], [])


def test_a_program_without_sink_is_refused(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1], name="a")
    with pytest.raises(NoSink, match=r"operators 'a', and no sink; end a stream with sink_to, collect or print"):
        program.translated(env)
    with pytest.raises(NoSink, match="the environment has no operators"):
        program.translated(StreamEnvironment())


def test_an_environment_can_be_submitted_twice(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).map(str).sink_to(program.Swallow)
    first, second = program.translated(env).graph, program.translated(env).graph
    assert first.job_id != second.job_id
    assert (first.vertices, first.edges) == (second.vertices, second.edges)


def test_the_cluster_may_choose_id_and_name(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).sink_to(program.Swallow)
    graph = program.translated(env, job_id=JobId("job-7"), name="worst-delay").graph
    assert (graph.job_id, graph.name) == ("job-7", "worst-delay")


def test_parallelism_is_the_operators_or_the_environments_or_the_clusters(program: Any) -> None:
    env = StreamEnvironment(parallelism=3)
    numbers = env.generate(str, 1, name="a").map(str, name="b", parallelism=4)
    numbers.sink_to(program.Swallow, name="c")
    assert program.shape(env)[0] == ["a x3", "b x4", "c x3"]


class TestCollections:
    """One subtask reads a collection, as in Flink, and what follows by forward edges keeps its records together."""

    @pytest.mark.parametrize("parallelism", [None, 1])
    def test_one_subtask_reads_it_and_what_follows_is_chained(self, program: Any, parallelism: int | None) -> None:
        env = StreamEnvironment(parallelism=3)
        numbers = env.from_collection([1], name="a", parallelism=parallelism)
        numbers.map(str, name="b").filter(bool, name="c").sink_to(program.Swallow, name="d")
        assert program.shape(env) == (["a -> b -> c -> d x1"], [])

    def test_its_own_parallelism_is_that_of_what_follows(self, program: Any) -> None:
        env = StreamEnvironment(parallelism=3)
        env.from_collection([1], name="a", parallelism=2).map(str, name="b").sink_to(program.Swallow, name="c")
        assert program.shape(env) == (["a -> b -> c x2"], [])

    def test_what_follows_may_have_a_parallelism_of_its_own(self, program: Any) -> None:
        env = StreamEnvironment(parallelism=3)
        env.from_collection([1], name="a").map(str, name="b", parallelism=2).sink_to(program.Swallow, name="c")
        assert program.shape(env)[0] == ["a x1", "b x2", "c x3"]

    def test_behind_a_key_the_default_holds_again(self, program: Any) -> None:
        env = StreamEnvironment(parallelism=3)
        keyed = env.from_collection([1], name="a").map(str, name="b").key_by(0)
        keyed.process(program.Worst, name="worst").map(str, name="c").sink_to(program.Swallow, name="d")
        assert program.shape(env) == (["a -> b x1", "worst -> c -> d x3"], ["a =hash=> worst"])

    @pytest.mark.parametrize("method", ["rebalance", "broadcast"])
    def test_behind_a_partitioning_the_default_holds_again(self, program: Any, method: str) -> None:
        env = StreamEnvironment(parallelism=3)
        getattr(env.from_collection([1], name="a"), method)().map(str, name="b").sink_to(program.Swallow, name="c")
        assert program.shape(env) == (["a x1", "b -> c x3"], [f"a ={method}=> b"])

    def test_behind_a_union_the_default_holds_again(self, program: Any) -> None:
        env = StreamEnvironment(parallelism=3)
        both = env.from_collection([1], name="a").union(env.from_collection([2], name="b"))
        both.map(str, name="c").sink_to(program.Swallow, name="d")
        assert program.shape(env)[0] == ["a x1", "b x1", "c -> d x3"]

    def test_other_slots_and_several_readers_follow_too(self, program: Any) -> None:
        env = StreamEnvironment(parallelism=3)
        top = env.from_collection([1], name="top")
        top.map(str, name="left", slot_sharing_group="heavy").sink_to(program.Swallow, name="one")
        top.sink_to(program.Swallow, name="other")
        assert program.shape(env) == (
            ["top x1", "left -> one x1", "other x1"],
            ["top =forward=> left", "top =forward=> other"],
        )


def test_a_parallelism_above_max_parallelism_is_refused(program: Any) -> None:
    env = StreamEnvironment(max_parallelism=4)
    env.from_collection([1], name="a", parallelism=5).sink_to(program.Swallow)
    with pytest.raises(InvalidProgram, match="'a' has parallelism 5, above the max_parallelism of 4; lower it, or"):
        program.translated(env)


def test_too_few_slots_are_told_with_the_numbers(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1], name="a", parallelism=5).sink_to(program.Swallow, name="b", parallelism=1)
    with pytest.raises(ClusterTooSmall, match=r"needs 5 slots, .* has 4 \(2 TaskManagers .* is 5 in 'a'"):
        program.translated(env, slots=2)
    program.translated(env, slots=3)


def test_checkpoints_go_to_the_clusters_folder_unless_the_environment_names_one(program: Any) -> None:
    for chosen, directory in ((None, "/work-dir/checkpoints"), ("s3://b/c", "s3://b/c"), ("/data/x", "/data/x")):
        env = StreamEnvironment(checkpoint_dir=chosen)
        env.from_collection([1]).sink_to(program.Swallow)
        assert program.translated(env).graph.checkpoints.directory == directory


def test_bounded_is_what_its_sources_are(env: StreamEnvironment, program: Any) -> None:
    endless = env.from_source(program.Flights(bounded=False), name="endless")
    endless.union(env.from_source(program.Flights(), name="ending")).sink_to(program.Swallow, name="out")
    bounded = {vertex.name: vertex.bounded for vertex in program.translated(env).graph.vertices}
    assert bounded == {"endless": False, "ending": True, "out": False}


def test_dataframe_sources_share_the_task_managers(env: StreamEnvironment, program: Any) -> None:
    first, second = _DataFrame(), _DataFrame()
    left, right = env.from_dataframe(first, name="first"), env.from_dataframe(second, name="second")
    left.union(right).sink_to(program.Swallow)
    translation = program.translated(env, task_managers=5, default_parallelism=5)
    bound = [(v.name, v.parallelism, v.first_task_manager) for v in translation.graph.vertices if v.task_manager_bound]
    assert bound == [("first", 2, 0), ("second", 2, 2)]
    assert [(b.dataframe, b.first_task_manager, b.parallelism) for b in translation.dataframes] == [
        (first, 0, 2),
        (second, 2, 2),
    ]


def test_a_chosen_parallelism_leaves_the_rest_to_the_other_dataframes(env: StreamEnvironment, program: Any) -> None:
    left = env.from_dataframe(_DataFrame(), name="first", parallelism=1)
    left.union(env.from_dataframe(_DataFrame(), name="second")).sink_to(program.Swallow, name="out")
    assert program.shape(env, task_managers=4, default_parallelism=4)[0] == ["first x1", "second x3", "out x4"]


def test_too_few_task_managers_for_the_dataframes(env: StreamEnvironment, program: Any) -> None:
    left = env.from_dataframe(_DataFrame(), name="first")
    left.union(env.from_dataframe(_DataFrame(), name="second")).sink_to(program.Swallow)
    with pytest.raises(ClusterTooSmall, match=r"need 2 TaskManagers, .*\('first' 1, 'second' 1\); the cluster has 1"):
        program.translated(env, task_managers=1)


def test_a_dataframe_source_is_chained_like_any_other(env: StreamEnvironment, program: Any) -> None:
    env.from_dataframe(_DataFrame(), name="flights").map(str, name="text").sink_to(program.Swallow, name="out")
    translation = program.translated(env)
    (vertex,) = translation.graph.vertices
    assert (vertex.name, vertex.task_manager_bound) == ("flights -> text -> out", True)


def test_a_dataframes_columns_are_known(env: StreamEnvironment) -> None:
    sql = pytest.importorskip("pyspark.sql.types")
    frame = types.SimpleNamespace(
        schema=sql.StructType().add("origin", sql.StringType()).add("time_hour", sql.TimestampType())
    )
    schema = env.from_dataframe(frame).schema
    assert [str(field.type) for field in schema] == ["string", "timestamp[us, tz=UTC]"]


def test_pyspark_is_imported_only_for_a_dataframe(monkeypatch: pytest.MonkeyPatch, env: StreamEnvironment) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # importing it fails from now on
    monkeypatch.setitem(sys.modules, "pyspark.sql.pandas.types", None)
    env.from_collection([1])
    with pytest.raises(ValueError, match=r"wanted a PySpark DataFrame, found a list"):
        env.from_dataframe([1])


def test_a_streaming_dataframe_is_refused(env: StreamEnvironment) -> None:
    frame = types.SimpleNamespace(schema=_DataFrame().schema, isStreaming=True)
    with pytest.raises(ValueError, match="wanted a batch DataFrame, found a streaming one"):
        env.from_dataframe(frame)


def test_operator_ids_come_from_names_and_are_safe_in_paths(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1], name="a/b").sink_to(program.Swallow, name="plain")
    source, sink = program.translated(env).graph.vertices[0].operators
    assert sink.operator_id == "plain"
    assert source.operator_id.startswith("a_b-")
    assert (source.kind, sink.kind) == ("source", "sink")


def test_a_uid_keeps_the_id_when_the_name_changes(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).name("before").uid("numbers").name("after").sink_to(program.Swallow)
    described = program.translated(env).graph.vertices[0].operators[0]
    assert (described.operator_id, described.name) == ("numbers", "after")


def test_a_collect_sink_gets_a_directory_of_its_job(env: StreamEnvironment, program: Any) -> None:
    env.from_collection([1]).collect(name="out")
    paths = [program.translated(env, job_id=job).sinks["out"].path for job in ("job-1", "job-2")]
    assert paths == ["/work-dir/checkpoints/collected/job-1/out", "/work-dir/checkpoints/collected/job-2/out"]


class Plain:
    """Nothing that can be stored."""


def test_a_state_of_a_type_that_cannot_be_stored_is_refused_at_submit(env: StreamEnvironment, program: Any) -> None:
    keeping = type("Keeping", (program.Worst,), {"held": ListState(Plain)})
    env.from_collection([1]).key_by(0).process(keeping, name="keep").sink_to(program.Swallow)
    with pytest.raises(
        InvalidOperator, match=r"operator 'keep': state 'held' is a ListState: a .*Plain cannot be stored"
    ):
        program.translated(env)


class Sealed:
    """A serializer that holds what cannot be pickled."""

    name, version = "sealed", 1

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def serialize(self, value: Any) -> bytes:
        return b""

    def deserialize(self, data: bytes, version: int) -> Any:
        return None


def test_a_serializer_that_cannot_be_shipped_is_refused_at_submit(env: StreamEnvironment, program: Any) -> None:
    register_serializer(Sealed())
    env.from_collection([1]).sink_to(program.Swallow)
    with pytest.raises(NotPicklable, match="serializer 'sealed' cannot be shipped"):
        program.translated(env)


async def fetched(record: Any) -> Any:
    return record


def test_an_operators_rate_is_in_the_graph(env: StreamEnvironment, program: Any) -> None:
    fetch = env.from_collection([1], name="a").map(fetched, name="fetch").async_settings(rate_per_second=2.5)
    fetch.sink_to(program.Swallow, name="b")
    vertices = program.translated(env).graph.vertices
    rates = {each.name: each.rate_per_second for vertex in vertices for each in vertex.operators}
    assert rates == {"a": None, "fetch": 2.5, "b": None}


@pytest.mark.parametrize(
    ("backend", "folder", "has_key", "said"),
    [
        ("rocksdb", None, True, "in the folder for temporary files"),
        ("rocksdb", "/fast", True, "/fast"),
        ("rocksdb", None, False, None),
        ("filesystem", None, True, None),
    ],
)
def test_files_of_rocksdb_that_are_not_encrypted_are_warned_of(
    program: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    backend: str,
    folder: str | None,
    has_key: bool,
    said: str | None,
) -> None:
    if has_key:
        add_key(str(tmp_path / "keys"))
        monkeypatch.setenv(VARIABLE, str(tmp_path / "keys"))
    env = StreamEnvironment(state_backend=backend, state_dir=folder)
    env.from_collection([1]).sink_to(program.Swallow)
    program.translated(env)
    assert ("RocksDB's working files" in caplog.text) == (said is not None)
    assert said is None or said in caplog.text
