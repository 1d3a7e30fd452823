"""Does a savepoint fit a program? Flink: CheckpointsTest, StateAssignmentOperationTest, VertexFinishedStateChecker."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from understudy.actors.errors import StateDoesNotFit
from understudy.actors.joins.window_join import TumblingWindows
from understudy.actors.restore.restore_check import RestoreReport, check_restore, with_carried_states
from understudy.messages import ChannelStateHandle, JobGraph, OperatorSubtaskState, StateDescription, SubtaskIndex
from understudy.runtime.connectors.files.file_sink import FileSink
from understudy.runtime.connectors.files.outlet_sink import OutletSink
from understudy.runtime.connectors.kafka.kafka_sink import KafkaSink
from understudy.state import inline_handle
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.columnar.pane_windows import sliding_panes
from understudy.state.columnar.rows_format import KeptRows, describe_rows
from understudy.state.kinds.aggregation_fit import describe_aggregation
from understudy.state.kinds.state_descriptions import describe_states

from ..graphs import edge, graph
from ..savepoints import chain, checkpoint, keyed_state, list_state, operator

CALLS = StateDescription("records in flight", "AsyncCalls")
TOTAL = StateDescription("total", "ValueState", "int")
WORST = StateDescription("worst", "ValueState", "float")
SEEN = StateDescription("seen", "OperatorListState", "str")
ALL = range(128)


def offset_of(source: str, rescales: bool = True) -> StateDescription:
    return StateDescription("source-offset", "SourceOffset", {"source": source, "rescales": rescales})


def aggregation(keys: list[str], types: dict[str, str] | None = None) -> StateDescription:
    schema = {"keys": keys, "aggregates": {"n": "Count()"}, "types": types}
    return StateDescription("columnar aggregation", "ColumnarAggregate", schema)


def problems(was: CompletedCheckpoint, program: JobGraph, *, allow: bool = False) -> list[str]:
    with pytest.raises(StateDoesNotFit) as refused:
        check_restore(was, program, allow_non_restored_state=allow)
    assert all(problem in str(refused.value) for problem in refused.value.problems)
    return list(refused.value.problems)


SAVED = checkpoint((chain(operator("sum", TOTAL)), [{"sum": keyed_state(ALL)}]))


def test_the_report_says_who_finds_state_and_who_begins_anew() -> None:
    program = graph(chain(operator("sum", TOTAL), operator("new", WORST), "stateless"))
    assert check_restore(SAVED, program) == RestoreReport(
        matched=("sum",), fresh=("new",), left_behind=(), states={"sum.total": "compatible"}
    )


def test_an_operator_is_known_by_its_id_whatever_its_name() -> None:
    program = graph(chain(operator("renamed", TOTAL, id="sum")))
    assert check_restore(SAVED, program).matched == ("renamed",)


def test_state_that_nobody_takes_is_refused_with_what_did_match_and_what_is_new() -> None:
    saved = checkpoint(
        (
            chain(operator("sum", TOTAL), operator("kept", SEEN)),
            [{"sum": keyed_state(ALL), "kept": list_state("seen", 1)}],
        )
    )
    with pytest.raises(StateDoesNotFit) as refused:
        check_restore(saved, graph(chain(operator("total", TOTAL), operator("kept", SEEN))))
    text = str(refused.value)
    assert refused.value.matched == ("kept",)
    assert "operator 'sum' (id sum) has state that no operator of the program takes over" in text
    assert "operators that match: 'kept'" in text
    assert "operators that would start without state: 'total'" in text
    assert "uid" in text


def test_a_uid_that_was_given_late_is_named() -> None:
    (problem,) = problems(SAVED, graph(chain(operator("sum", TOTAL, id="later"))))
    assert problem.endswith("; the program's 'sum' has the uid 'later': .uid('sum')")


def test_state_may_be_left_behind_where_that_is_allowed() -> None:
    report = check_restore(SAVED, graph(chain("other")), allow_non_restored_state=True)
    assert report == RestoreReport(matched=(), fresh=(), left_behind=("sum",))


def test_an_operator_without_state_may_go() -> None:
    saved = checkpoint((chain("map", operator("sink", SEEN)), [{"map": OperatorSubtaskState()}]))
    assert check_restore(saved, graph(chain("other"))) == RestoreReport((), (), ())


def test_a_list_that_its_operator_declares_no_more_is_left_behind_or_refused() -> None:
    """It may be a source's offset, or transactions that are prepared: not to be forgotten in silence."""
    saved = checkpoint((source("Feed").vertices[0], [OFFSET]))
    program = graph(chain(operator("source", SEEN)))
    assert "operator 'source' held the list 'source-offset', and declares none such now" in problems(saved, program)[0]
    assert check_restore(saved, program, allow_non_restored_state=True).left_behind == ("source",)


TRANSACTIONS = StateDescription("two-phase-commit", "OperatorListState", "tuple")


@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize(
    ("sink", "own"), [(FileSink, "files-in-progress"), (KafkaSink, "kafka-transactions"), (OutletSink, "outlet")]
)
def test_transactions_of_a_users_own_sink_are_refused_by_one_of_ours(sink: type, own: str, allow: bool) -> None:
    """It would not know what they say."""
    held = list_state("two-phase-commit", 1)
    saved = checkpoint((chain(operator("sink", TRANSACTIONS)), [{"sink": held}]))
    (problem,) = problems(saved, graph(chain(operator("sink", *describe_states(sink)))), allow=allow)
    assert f"operator 'sink' held transactions of another kind of sink, one without '{own}'" in problem
    assert "another name or uid" in problem


def test_transactions_of_the_same_sink_fit_and_so_does_a_list_that_a_users_own_sink_has_got() -> None:
    held = list_state("two-phase-commit", 1)
    ours, users = operator("sink", *describe_states(FileSink)), operator("sink", TRANSACTIONS, SEEN)
    for was, now in ((ours, ours), (operator("sink", TRANSACTIONS), users)):
        assert check_restore(checkpoint((chain(was), [{"sink": held}])), graph(chain(now))).matched == ("sink",)
    never_run = checkpoint((chain(operator("sink", TRANSACTIONS)), [{"sink": OperatorSubtaskState()}]))
    assert check_restore(never_run, graph(chain(ours))).matched == ()


def test_keyed_state_of_an_operator_that_has_no_keys_any_more_is_left_behind_or_refused() -> None:
    program = graph(chain(operator("sum", SEEN)))
    assert "operator 'sum' held state by key, and declares none such now" in problems(SAVED, program)[0]
    assert check_restore(SAVED, program, allow_non_restored_state=True).left_behind == ("sum",)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (replace(TOTAL, schema="str"), "int does not become str"),
        (replace(TOTAL, kind="ListState", schema={"list": "int"}), "was a ValueState and is a ListState now"),
        (replace(TOTAL, schema={"record": "R", "fields": {"a": "int"}}), "int does not become R"),
    ],
)
@pytest.mark.parametrize("allow", [False, True])
def test_a_state_that_changed_its_kind_or_type_is_refused(declared: StateDescription, why: str, allow: bool) -> None:
    (problem,) = problems(SAVED, graph(chain(operator("sum", declared))), allow=allow)
    assert problem.startswith(f"state 'total' of operator 'sum' does not fit: {why}")


MAP = StateDescription("total", "MapState", {"map": ["str", "int"]})


@pytest.mark.parametrize(
    ("stored", "declared", "converts"),
    [
        (TOTAL, replace(TOTAL, schema="str"), True),
        (TOTAL, replace(TOTAL, kind="ListState", schema={"list": "int"}), False),
        (MAP, replace(MAP, schema={"map": ["str", "bytes"]}), True),
        (MAP, replace(MAP, schema={"map": ["bytes", "int"]}), False),
    ],
)
def test_a_refused_state_is_advised_to_convert_its_values_where_that_can_be(
    stored: StateDescription, declared: StateDescription, converts: bool
) -> None:
    """Not to begin empty alone: that loses what it holds."""
    saved = checkpoint((chain(operator("sum", stored)), [{"sum": keyed_state(ALL)}]))
    (problem,) = problems(saved, graph(chain(operator("sum", declared))))
    assert ("convert its values with .migrating(old type, function), or give" in problem) is converts
    assert problem.endswith("give the state another name to start it empty")


ACCOUNT = {"record": "Account", "fields": {"cents": "int"}}


@pytest.mark.parametrize(
    ("kind", "stored", "declared"),
    [
        ("ValueState", ACCOUNT, ACCOUNT | {"fields": {"cents": "Decimal"}}),
        ("ListState", {"list": ACCOUNT}, {"list": ACCOUNT | {"fields": {"cents": "Decimal"}}}),
        ("MapState", {"map": ["str", ACCOUNT]}, {"map": ["str", ACCOUNT | {"fields": {"cents": "Decimal"}}]}),
        ("ValueState", {"ttl": ACCOUNT, "clock": "event"}, ACCOUNT | {"fields": {"cents": "Decimal"}}),
        ("ValueState", ACCOUNT, {"migrates": [ACCOUNT | {"record": "Old"}], "values": "int"}),
    ],
)
def test_who_is_to_convert_records_learns_what_the_old_type_is(kind: str, stored: object, declared: object) -> None:
    """The class has the new fields now: the old ones need another class, which says whose records it reads."""
    was, now = (StateDescription("account", kind, each) for each in (stored, declared))
    saved = checkpoint((chain(operator("sum", was)), [{"sum": keyed_state(ALL)}]))
    (problem,) = problems(saved, graph(chain(operator("sum", now))))
    assert (
        "convert its values with .migrating(old type, function), where a class with the old fields and __formerly__ = "
        "{'class': 'Account'} stands for the old Account; or give the state another name to start it empty"
    ) in problem


@pytest.mark.parametrize("schema", ["float", {"optional": "int"}, "Any", None])
def test_a_state_that_can_be_migrated_or_is_not_known_before_it_runs_fits(schema: object) -> None:
    check_restore(SAVED, graph(chain(operator("sum", replace(TOTAL, schema=schema)))))


def test_a_list_that_held_nothing_may_change_its_type() -> None:
    saved = checkpoint((chain(operator("a", SEEN)), [{"a": list_state("seen", 0)}]))
    program = graph(chain(operator("a", replace(SEEN, schema="int"))))
    check_restore(saved, program)
    held = checkpoint((chain(operator("a", SEEN)), [{"a": list_state("seen", 1)}]))
    assert "str does not become int" in problems(held, program)[0]


def test_a_columnar_aggregation_keeps_its_keys_its_aggregates_and_its_types() -> None:
    state = {"agg": keyed_state(ALL, backend="columnar")}
    saved = checkpoint((chain(operator("agg", aggregation(["k"], {"k": "string"}))), [state]))
    check_restore(saved, graph(chain(operator("agg", aggregation(["k"])))))
    for declared, why in [
        (aggregation(["j"]), "declared keys ['j'], stored keys ['k']"),
        (aggregation(["k"], {"k": "int64"}), "k: declared int64, stored string"),
        (TOTAL, "held a columnar aggregation and declares keyed state of its own"),
    ]:
        (problem,) = problems(saved, graph(chain(operator("agg", declared))))
        assert why in problem


def test_kept_rows_keep_their_keys_and_types_and_are_no_other_state() -> None:
    schema = pa.schema([("key", pa.int64()), ("a", pa.string())])
    rows = describe_rows([KeptRows(("key",), schema)])
    saved = checkpoint((chain(operator("join", rows)), [{"join": keyed_state(ALL, backend="rows")}]))
    check_restore(saved, graph(chain(operator("join", rows))))
    other = describe_rows([KeptRows(("a",), schema)])
    for declared, why in [
        (other, "declared keys of input 1 ['a'], stored keys of input 1 ['key']"),
        (TOTAL, "held rows by key and declares keyed state of its own"),
        (aggregation(["k"]), "held rows by key and declares a columnar aggregation"),
    ]:
        (problem,) = problems(saved, graph(chain(operator("join", declared))))
        assert why in problem


@pytest.mark.parametrize(("size_ms", "why"), [(3000, "tumbling windows of 3000 ms"), (1000, "")])
def test_rows_and_aggregates_of_windows_of_another_size_are_refused_by_name(size_ms: int, why: str) -> None:
    schema = pa.schema([("key", pa.int64())])

    def rows(*size_ms: int) -> StateDescription:
        windows = [TumblingWindows(each, 0).described for each in size_ms]
        return describe_rows([KeptRows(("key",), schema)], *windows)

    def sums(size_ms: int) -> StateDescription:
        return describe_aggregation(["key"], {}, None, sliding_panes(size_ms, 1000).described)

    for stored, declared, backend in ((rows(1000), rows(size_ms), "rows"), (sums(1000), sums(size_ms), "columnar")):
        saved = checkpoint((chain(operator("w", stored)), [{"w": keyed_state(ALL, backend=backend)}]))
        found = problems(saved, graph(chain(operator("w", declared)))) if why else []
        assert len(found) == bool(why)
        for problem in found:
            assert "of operator 'w' does not fit: declared " in problem
            assert f"windows of {size_ms} ms" in problem
            assert "stored tumbling windows of 1000 ms; give the operator another name or uid" in problem
        if not why:
            check_restore(saved, graph(chain(operator("w", declared))))
    earlier = checkpoint((chain(operator("w", rows())), [{"w": keyed_state(ALL, backend="rows")}]))
    check_restore(earlier, graph(chain(operator("w", rows(size_ms)))))


def test_another_max_parallelism_is_refused_where_there_are_keys() -> None:
    program = graph(chain(operator("sum", TOTAL), max_parallelism=64))
    (problem,) = problems(SAVED, program)
    assert "max_parallelism 128 and has 64 now" in problem
    assert "edit = Savepoint.open(path).edit(), edit.max_parallelism(64), edit.write()" in problem
    assert "StreamEnvironment(max_parallelism=128)" in problem
    unkeyed = checkpoint((chain(operator("a", SEEN)), [{"a": list_state("seen", 1)}]))
    check_restore(unkeyed, graph(chain(operator("a", SEEN), max_parallelism=64)))


OFFSET = {"source": list_state("source-offset", 1, "union")}


def source(kind: str, parallelism: int = 1, rescales: bool = True, **fields: bool) -> JobGraph:
    return graph(chain(operator("source", offset_of(kind, rescales), kind="source"), parallelism=parallelism, **fields))


def test_a_source_that_cannot_deal_its_records_out_anew_keeps_its_parallelism() -> None:
    saved = checkpoint((source("Feed").vertices[0], [OFFSET]))
    check_restore(saved, source("Feed", rescales=False))
    check_restore(saved, source("Feed", 3))
    (problem,) = problems(saved, source("Feed", 3, rescales=False))
    assert "stored with parallelism 1 and has 3 now, and a Feed cannot" in problem
    (problem,) = problems(saved, source("Feed", 3, task_manager_bound=True))
    assert "DataFrame, which was in 1 partitions and would be in 3" in problem


def test_a_dataframe_that_comes_in_the_other_way_is_refused_with_how_to_have_the_former() -> None:
    for was, now, told in (
        ("SparkSource", "ScanSource", "read through Spark: from_dataframe(..., read_files=False)"),
        ("ScanSource", "SparkSource", "read from its files: give one that only scans files"),
    ):
        (problem,) = problems(checkpoint((source(was).vertices[0], [OFFSET])), source(now))
        assert f"was a {was} and is a {now} now" in problem
        assert told in problem


def test_the_offset_of_another_kind_of_source_is_refused() -> None:
    saved = checkpoint((source("FileSource").vertices[0], [OFFSET]))
    (problem,) = problems(saved, source("GeneratorSource"))
    assert "was a FileSource and is a GeneratorSource now" in problem


def test_an_operator_that_had_ended_in_some_subtasks_cannot_be_rescaled() -> None:
    """Final results were emitted there, and not elsewhere: mixed, they would come twice or never."""
    kept = {"a": list_state("seen", 1)}
    vertex = chain(operator("a", SEEN), parallelism=2)
    saved = checkpoint((vertex, [kept, kept], [True, False]))
    check_restore(saved, graph(vertex))
    (problem,) = problems(saved, graph(replace(vertex, parallelism=3)))
    assert "had taken all its input in 1 of its 2 subtasks" in problem
    check_restore(checkpoint((vertex, [kept, {}], [False, True])), graph(replace(vertex, parallelism=3)))
    check_restore(checkpoint((vertex, [kept, kept], [True, True])), graph(replace(vertex, parallelism=3)))
    silent = replace(operator("a", SEEN), emits_at_end=False)
    for each in (operator("a", SEEN, kind="source"), operator("a", SEEN, kind="sink"), silent):
        other = chain(each, parallelism=2)
        check_restore(checkpoint((other, [kept, kept], [True, False])), graph(replace(other, parallelism=3)))


def test_an_operator_that_had_ended_cannot_get_a_new_input() -> None:
    kept = {"a": list_state("seen", 1)}
    saved = checkpoint((chain("s"), [{}], [True]), (chain(operator("a", SEEN)), [kept], [True]))
    same = graph(chain("s"), chain(operator("a", SEEN)), edges=[edge("s", "a")])
    check_restore(saved, same)
    program = graph(*same.vertices, chain("other"), edges=[*same.edges, edge("other", "a", input_index=1)])
    assert "would emit them again" in problems(saved, program)[0]


def test_what_was_in_flight_wants_the_very_same_graph() -> None:
    flying = (ChannelStateHandle(0, SubtaskIndex(0), (0, 1), inline_handle(b"x")),)
    same = graph(chain("a"), chain("b", "c"), edges=[edge("a", "b")])
    vertices = [(same.vertices[0], [{}]), (same.vertices[1], [{}], [False], [flying])]
    saved = checkpoint(*vertices, edges=same.edges)
    check_restore(saved, same)
    for program in (
        replace(same, vertices=(same.vertices[0], replace(same.vertices[1], parallelism=2))),
        replace(same, vertices=(same.vertices[0], chain("b", "new", "c"))),
        replace(same, edges=(edge("a", "b", input_index=1),)),
        graph(*same.vertices, chain("d"), edges=[*same.edges, edge("b", "d")]),
    ):
        (problem,) = problems(saved, program, allow=True)
        assert "unaligned" in problem
        assert "A savepoint can be restored into a changed program: take one" in problem
    aligned = checkpoint(*[each[:2] for each in vertices], edges=same.edges)
    check_restore(aligned, replace(same, edges=(edge("a", "b", input_index=1),)))


def test_everything_that_is_wrong_is_told_at_once() -> None:
    saved = checkpoint(
        (chain(operator("sum", TOTAL)), [{"sum": keyed_state(ALL)}]),
        (chain(operator("gone", SEEN)), [{"gone": list_state("seen", 1)}]),
    )
    program = graph(chain(operator("sum", replace(TOTAL, schema="str")), max_parallelism=64))
    assert len(problems(saved, program)) == 3


def test_a_state_that_is_carried_along_undeclared_is_still_known_to_the_next_savepoint() -> None:
    """So that a program which declares it again with another type is refused at submit, too."""
    saved = checkpoint((chain(operator("sum", TOTAL, WORST)), [{"sum": keyed_state(ALL)}]))
    told = with_carried_states(graph(chain(operator("sum", TOTAL), "new")), saved)
    assert told == graph(chain(operator("sum", TOTAL, WORST), "new"))


@pytest.mark.parametrize(
    ("declared", "held", "now", "carried"),
    [
        ((TOTAL, WORST), keyed_state(ALL), (TOTAL,), {"sum.worst": "not declared, carried along"}),
        ((TOTAL, SEEN), keyed_state(ALL), (TOTAL,), {}),
        ((TOTAL, CALLS), keyed_state(ALL), (TOTAL,), {}),
        ((TOTAL, WORST), keyed_state(ALL), (SEEN,), {}),
        ((TOTAL, WORST), OperatorSubtaskState(), (TOTAL,), {}),
    ],
    ids=["by key", "a list", "nothing in flight", "without keys now", "held nothing"],
)
def test_state_by_key_alone_is_carried_along_and_only_where_there_are_keys(
    declared: tuple[StateDescription, ...],
    held: OperatorSubtaskState,
    now: tuple[StateDescription, ...],
    carried: dict[str, str],
) -> None:
    saved = checkpoint((chain(operator("sum", *declared)), [{"sum": held}]))
    report = check_restore(saved, graph(chain(operator("sum", *now))), allow_non_restored_state=True)
    assert {name: what for name, what in report.states.items() if what != "compatible"} == carried


def test_what_coroutines_have_in_flight_is_taken_over_with_and_without_other_state() -> None:
    saved = checkpoint((chain(operator("fetch", CALLS)), [{"fetch": keyed_state(ALL)}]))
    assert check_restore(saved, graph(chain(operator("fetch", CALLS)))).matched == ("fetch",)
    assert check_restore(saved, graph(chain(operator("fetch", CALLS, TOTAL)))).matched == ("fetch",)


def test_what_coroutines_have_in_flight_is_lost_to_an_operator_that_has_none_any_more() -> None:
    """The records are in the savepoint alone: the source will not emit them again."""
    states = [{"fetch": keyed_state(range(64), in_flight=2)}, {"fetch": keyed_state(range(64, 128), in_flight=1)}]
    for declared in ((TOTAL, CALLS), (CALLS,)):
        saved = checkpoint((chain(operator("fetch", *declared), parallelism=2), states))
        program = graph(chain(operator("fetch", *declared[:-1]), parallelism=2))
        (problem,) = problems(saved, program)
        assert problem == (
            "operator 'fetch' held 3 records that its coroutines had in flight, and runs none now: they are in this "
            "savepoint alone. Leave it `async def process` (it need not await anything), or allow them to be lost "
            "(allow_non_restored_state)"
        )
        assert check_restore(saved, program, allow_non_restored_state=True).left_behind == ("fetch",)


def test_an_operator_whose_coroutines_had_nothing_in_flight_may_have_none_any_more_and_get_some() -> None:
    had_some = checkpoint((chain(operator("fetch", TOTAL, CALLS)), [{"fetch": keyed_state(ALL)}]))
    assert check_restore(had_some, graph(chain(operator("fetch", TOTAL)))).matched == ("fetch",)
    had_none = checkpoint((chain(operator("fetch", TOTAL)), [{"fetch": keyed_state(ALL)}]))
    assert check_restore(had_none, graph(chain(operator("fetch", TOTAL, CALLS)))).matched == ("fetch",)
