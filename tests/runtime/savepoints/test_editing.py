"""New savepoints: edited ones and bootstrapped ones, and the jobs that start from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from understudy import (
    InvalidEdit,
    KeyedOperator,
    ListState,
    LocalCluster,
    MapState,
    NoSuchState,
    Savepoint,
    StreamEnvironment,
    Ttl,
    ValueState,
)
from understudy.messages import CheckpointId, KeyedStateHandle, OperatorId
from understudy.state import (
    HeapBackend,
    SnapshotTarget,
    SubtaskSnapshot,
)

from ...examples import examples
from .made import (
    ALL,
    MAX_PARALLELISM,
    TAKEN_MS,
    Declared,
    Subtask,
    by_key,
    declared_states,
    lists,
    restored,
    savepoint,
)


def test_what_is_not_edited_is_the_same_in_files_of_its_own(tmp_path: Path) -> None:
    path = savepoint(tmp_path / "one")
    before = {file: file.read_bytes() for file in (tmp_path / "one").rglob("*") if file.is_file()}
    written = Savepoint.open(path).edit().write(tmp_path / "two")
    assert Savepoint.verify(written).is_whole
    assert Savepoint.open(path).diff(written).is_same
    assert {file: file.read_bytes() for file in (tmp_path / "one").rglob("*") if file.is_file()} == before
    for file in before:
        file.unlink()
    assert Savepoint.verify(written).is_whole
    assert Savepoint.open(written).checkpoint_id == 3


Model = dict[Any, int]


class Step(NamedTuple):
    what: str
    rows: Model


def play(step: Step, held: Model) -> Model:
    match step.what:
        case "put":
            return held | step.rows
        case "remove":
            return {key: value for key, value in held.items() if key not in step.rows}
        case "drop":
            return {}
    return {key: value * 2 for key, value in held.items() if value % 3}


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["put", "remove", "drop", "update"]),
        st.dictionaries(st.integers(0, 9) | st.sampled_from(["JFK", "XYZ"]), st.integers(-9, 9), max_size=5),
    ),
    max_size=5,
)


@examples(25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(script=steps, max_parallelism=st.sampled_from([None, 4, 16, 24, 128]))
@example(script=[], max_parallelism=4)
@example(script=[], max_parallelism=24)
def test_any_edit_is_what_it_is_on_a_dict_for_who_reads_and_for_who_restores(
    script: list[Step], max_parallelism: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("edit")
    keys = [*range(6), "JFK"]
    opened = Savepoint.open(savepoint(root, {"declared": declared_states(keys)}))
    edit = opened.edit()
    value = edit.operator("declared").state("value")
    held = {key: at * 10 for at, key in enumerate(keys)}
    for step in script:
        held = play(step, held)
        match step.what:
            case "put":
                value.put(step.rows)
            case "remove":
                value.remove(step.rows)
            case "drop":
                value.drop()
            case _:
                value.update(lambda key, number: number * 2 if number % 3 else None)
    if max_parallelism is not None:
        edit.max_parallelism(max_parallelism)
    written = Savepoint.open(edit.write())
    assert Savepoint.verify(written.path).is_whole
    if held or "value" in written.operator("declared").table_names():
        assert by_key(written, "declared", "value") == held
    assert by_key(written, "declared", "total") == {key: at for at, key in enumerate(keys)}
    assert written.operator("declared").timers().count() == 2 * len(keys)
    found: Model = {}
    for backend in restored(written, "declared"):
        state = backend.state(Declared.value)
        for key in backend.keys("value"):
            backend.current_key = key
            found[key] = state.value()
    assert found == held


def test_each_kind_of_state_is_put_and_restored_as_the_job_would_have_it(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path)).edit()
    declared = edit.operator("declared")
    declared.state("leg").put(pa.table({"key": ["new"], "origin": ["JFK"], "delay": [1.5]}), value=None)
    declared.state("items").put({"new": [1, 2]})
    declared.state("table").put({"new": {"a": 1}})
    declared.state("folded").put({"new": (3, 4.5)})
    declared.state("fresh").put({"new": 9})
    declared.state("plain").put({"new": {"any": ("thing", 1)}})
    declared.timers().put([("new", 5_000), ("new", (6_000, "window"))])
    declared.timers("processing").drop()
    written = Savepoint.open(edit.write())
    (backend,) = restored(written, "declared", 1)
    timers = backend.timers()
    backend.current_key = "new"
    assert backend.state(Declared.leg).value() == Declared.leg.type("JFK", 1.5)
    assert backend.state(Declared.items).get() == [1, 2]
    assert backend.state(Declared.table).items() == [("a", 1)]
    assert backend.state(Declared.folded).get() == (3, 4.5)
    assert backend.state(Declared.fresh).value() == 9
    assert backend.state(Declared.plain).value() == {"any": ("thing", 1)}
    assert {timer for timer in timers.event if timer[1] == "new"} == {(5_000, "new", ()), (6_000, "new", "window")}
    assert not len(timers.processing)


def test_only_none_drops_an_entry(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path, {"declared": declared_states([1, 2, 3])})).edit()
    edit.operator("declared").state("value").update(lambda key, _number: None if key == 2 else 0)
    assert by_key(Savepoint.open(edit.write()), "declared", "value") == {1: 0, 3: 0}


def test_a_value_that_is_changed_expires_when_it_would_have(tmp_path: Path) -> None:
    """What is put counts as updated when the savepoint was taken."""
    edit = Savepoint.open(savepoint(tmp_path, {"declared": declared_states([1, 2, 3])})).edit()
    edit.operator("declared").state("fresh").update(lambda _key, number: number + 10).put({3: 7})
    rows = Savepoint.open(edit.write()).operator("declared").state("fresh").to_arrow().to_pylist()
    assert {row["key"]: row["value"] for row in rows} == {1: 10, 2: 11, 3: 7}
    assert {row["key"]: row["updated_ms"] for row in rows} == {1: 1_000, 2: 1_000, 3: TAKEN_MS}


def test_items_of_lists_are_changed_and_dropped(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path, {"lists": lists(3)})).edit()
    edit.operator("lists").state("noted").update(lambda position, item: None if position == 1 else item + 1)
    noted = Savepoint.open(edit.write()).operator("lists").state("noted")
    assert [(row["subtask"], row["value"]) for row in noted.rows()] == [(0, 1), (0, 3), (1, 101), (1, 103)]


ROWS = [("JFK", 1), ("LGA", 2), (("EWR", 1), 3)]


@pytest.mark.parametrize(
    "rows",
    [
        dict(ROWS[:2]),
        ROWS[:2],
        [{"key": key, "value": value} for key, value in ROWS[:2]],
        pa.table({"key": ["JFK", "LGA"], "value": [1, 2]}),
        pd.DataFrame({"key": ["JFK", "LGA"], "value": [1, 2]}),
    ],
    ids=["a mapping", "pairs", "dicts", "arrow", "pandas"],
)
def test_rows_come_from_whatever_holds_rows(rows: Any, tmp_path: Path) -> None:
    new = Savepoint.new()
    new.add("counts").declare(ValueState(int, name="seen")).put(rows)
    assert by_key(Savepoint.open(new.write(tmp_path)), "counts", "seen") == dict(ROWS[:2])


def test_columns_are_named_and_several_make_a_tuple(tmp_path: Path) -> None:
    table = pa.table({"airport": ["JFK", "LGA"], "gate": [1, 2], "delay": [0.5, math.pi]})
    new = Savepoint.new(max_parallelism=32)
    new.add("delays", parallelism=2).declare(ValueState(float, name="delay")).put(
        table, key=("airport", "gate"), value="delay"
    )
    opened = Savepoint.open(new.write(tmp_path))
    assert by_key(opened, "delays", "delay") == {("JFK", 1): 0.5, ("LGA", 2): math.pi}
    assert opened.operator("delays").max_parallelism == 32


def test_what_was_exported_can_be_put_again(tmp_path: Path) -> None:
    opened = Savepoint.open(savepoint(tmp_path / "one", {"declared": declared_states([("a", at) for at in range(40)])}))
    new = Savepoint.new(16)
    copied = new.add("declared", Declared)
    for name in ("value", "leg", "items", "table", "total", "folded"):
        copied.state(name).put(opened.operator("declared").state(name).to_arrow())
    found = opened.diff(new.write(tmp_path / "two"))
    assert [each.state for each in found.states() if not each.is_same] == [
        "fresh", "plain", "event-time timers", "processing-time timers",
    ]  # fmt: skip


def value(edit: Any) -> Any:
    return edit.operator("declared").state("value")


def leg(edit: Any) -> Any:
    return edit.operator("declared").state("leg")


MISTAKES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda edit: value(edit).put({"JFK": "text"}), "declared.value, key 'JFK': wanted int"),
    (lambda edit: leg(edit).put({"JFK": {"origin": "x"}}), "'delay' is missing"),
    (lambda edit: leg(edit).put({"JFK": {"origin": "x", "delay": 1.0, "gate": 2}}), "has no field 'gate'"),
    (lambda edit: value(edit).put([1, 2]), "dicts or (key, value) pairs, found 1"),
    (lambda edit: value(edit).put([{"id": 1}]), "there is no column 'key'; there are: 'id'"),
    (lambda edit: value(edit).put({1.5: None}), "wanted int, found NoneType"),
    (lambda edit: value(edit).put([((1, [2]), 2)]), "this is no key"),
    (lambda edit: edit.operator("declared").timers().put({"JFK": "soon"}), "wanted a time in ms"),
    (lambda edit: edit.operator("declared").timers("wall"), "wanted 'event' or 'processing', found 'wall'"),
    (lambda edit: edit.operator("lists").state("noted").put({1: 2}), "a list has no keys"),
    (lambda edit: edit.operator("lists").state("noted").update(lambda at, item: "text"), "item 0: wanted int"),
    (lambda edit: edit.operator("aggregation").state("columnar aggregation"), "state in columns is not edited"),
    (lambda edit: edit.max_parallelism(8), "given neither other values nor another max_parallelism"),
    (lambda edit: edit.max_parallelism(0), "wanted 1 to 32768, found 0"),
    (lambda edit: edit.operator("declared").rename("lists"), "two operators would have the uid 'lists'"),
    (lambda edit: edit.operator("declared").declare(ValueState(int, name="value")), "has a state 'value' already"),
    (lambda edit: edit.add("lists"), "there is an operator 'lists' already"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "text"), MISTAKES)
def test_a_mistake_is_answered_in_words_and_nothing_is_left(
    mistake: Callable[[Any], Any], text: str, tmp_path: Path
) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()

    def make() -> None:
        mistake(edit)
        edit.write(tmp_path / "two")

    with pytest.raises((InvalidEdit, TypeError)) as found:
        make()
    assert text in str(found.value)
    assert [each for each in (tmp_path / "two").rglob("*") if each.is_file()] == []


def test_names_that_are_not_there_are_answered_with_those_that_are(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path)).edit()
    with pytest.raises(NoSuchState, match="'value', 'leg'"):
        edit.operator("declared").state("valu")
    with pytest.raises(NoSuchState, match="'declared', 'aggregation'"):
        edit.operator("declare")


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.state.storage import CheckpointStorage

    opened = Savepoint.open(savepoint(tmp_path / "one", ALL))
    real, calls = CheckpointStorage.write, 0
    for failing in range(2, 8):
        calls = 0

        def write(self: Any, path: str, *args: Any, failing: int = failing, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == failing:
                raise OSError("the disk is full")
            return real(self, path, *args, **named)

        monkeypatch.setattr(CheckpointStorage, "write", write)
        try:
            path = opened.edit().write(tmp_path / "two")
        except OSError:
            assert [each for each in (tmp_path / "two").rglob("*") if each.is_file()] == []
        else:
            monkeypatch.undo()
            assert Savepoint.verify(path).is_whole
            return
        monkeypatch.undo()
    raise AssertionError("it never came to its end")


def test_what_was_put_before_a_drop_is_forgotten_too(tmp_path: Path) -> None:
    new = Savepoint.new()
    seen = new.add("counts").declare(ValueState(int, name="seen")).put({1: 1, 2: 2})
    seen.drop().put({2: 3}).update(lambda key, value: value + 1)
    assert by_key(Savepoint.open(new.write(tmp_path)), "counts", "seen") == {2: 4}


def test_a_new_operator_beside_others_has_their_max_parallelism(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()
    edit.add("counts").declare(ValueState(int, name="seen")).put({1: 1})
    assert Savepoint.open(edit.write()).operator("counts").max_parallelism == MAX_PARALLELISM


def test_a_state_that_is_declared_has_the_clock_of_its_ttl(tmp_path: Path) -> None:
    new = Savepoint.new()
    new.add("counts").declare(ValueState(int, name="seen", ttl=Ttl(hours=1, clock="event"))).put({1: 1})
    opened = Savepoint.open(new.write(tmp_path))
    assert opened.operator("counts").state("seen").type == "int with a TTL by event time"


def test_an_edited_last_checkpoint_is_the_last_one_and_has_as_many_records_in_flight(tmp_path: Path) -> None:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = HeapBackend(subtask.groups.first, subtask.groups.last, MAX_PARALLELISM)
        backend.current_key = "JFK"
        backend.state(Declared.value).update(1)
        write = backend.snapshot(CheckpointId(1))

        def with_calls(target: SnapshotTarget) -> KeyedStateHandle | None:
            handle = write(target)
            return None if handle is None else replace(handle, in_flight=3)

        snapshot.add(OperatorId("declared"), with_calls)

    opened = Savepoint.open(savepoint(tmp_path, {"declared": fill}, parallelism=1))
    opened.found = replace(opened.found, checkpoint=replace(opened.found.checkpoint, is_final=True))
    edit = opened.edit()
    edit.operator("declared").state("value").update(lambda key, value: value + 1)
    written = Savepoint.open(edit.write())
    (vertex,) = written.found.checkpoint.vertices.values()
    (state,) = vertex.subtasks.values()
    assert written.found.checkpoint.is_final
    assert [handle.in_flight for handle in state.operators[OperatorId("declared")].keyed] == [3]


class Seen(KeyedOperator):
    """How often each number has come, with what it began with; the timer that was put tells itself."""

    seen = ValueState(int, default=0)
    recent = ListState(int, ttl=Ttl(hours=1))
    by_text = MapState(str, int)

    def process(self, number: int, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(("timer", self.key, timer.time_ms))

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, self.seen.value(), self.recent.get(), dict(self.by_text.items())))


def job(folder: Path, max_parallelism: int | None = None) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_dir=str(folder), max_parallelism=max_parallelism, checkpoint_interval_ms=1000)
    env.from_collection(list(range(20))).key_by(lambda number: number % 4).process(Seen, name="seen").collect(
        name="out"
    )
    return env


@pytest.mark.parametrize("how", ["bootstrapped", "edited", "regrouped"])
def test_a_job_starts_from_it(how: str, tmp_path: Path) -> None:
    new = Savepoint.new()
    seen = new.add("seen", Seen, parallelism=2)
    seen.state("seen").put({key: 100 * key for key in range(6)})
    seen.state("recent").put({5: [1, 2]})
    seen.state("by_text").put([{"key": 5, "value": {"a": 1}}])
    seen.timers().put([(5, 1_000)])
    path, groups = new.write(tmp_path), None
    if how != "bootstrapped":
        edit = Savepoint.open(path).edit()
        edit.operator("seen").state("seen").update(lambda key, value: value + 7)
        if how == "regrouped":
            groups = 48
            edit.max_parallelism(groups)
        path = edit.write()
    more = 0 if how == "bootstrapped" else 7
    with LocalCluster(1, debug=True) as cluster:
        handle = cluster.submit(job(tmp_path, groups), "edited", from_savepoint=path)
        handle.wait(timeout=60)
        results = handle.results("out")
    expected = [(key, 100 * key + more + (5 if key < 4 else 0), [], {}) for key in range(5)]
    assert sorted(each for each in results if each[0] != "timer") == [*expected, (5, 500 + more, [1, 2], {"a": 1})]
    assert [each for each in results if each[0] == "timer"] == [("timer", 5, 1_000)]


def test_an_unaligned_checkpoint_is_not_edited(tmp_path: Path) -> None:
    """Its records on their way belong to channels of the very same job."""
    path = savepoint(tmp_path, {"lists": lists(1)}, in_flight=True)
    assert Savepoint.verify(path).is_whole
    assert Savepoint.open(path).operator("lists").state("noted").count() == 2
    with pytest.raises(InvalidEdit, match="it is an unaligned checkpoint"):
        Savepoint.open(path).edit().write()


@pytest.mark.parametrize(("was", "now"), [("memory", "filesystem"), ("filesystem", "memory")])
def test_a_savepoint_goes_from_one_backend_to_the_other(was: str, now: str, tmp_path: Path) -> None:
    """By way of a job's own checkpoint: what the first job leaves, the second one goes on from."""
    new = Savepoint.new()
    new.add("seen", Seen).state("seen").put(dict.fromkeys(range(4), 100))
    paths = [new.write(tmp_path)]
    for backend in (was, now):
        env = job(tmp_path)
        env.state_backend = backend
        with LocalCluster(1, debug=True) as cluster:
            handle = cluster.submit(env, "backends", from_savepoint=paths[-1])
            handle.wait(timeout=60)
            assert sorted(each[:2] for each in handle.results("out")) == [(key, 105) for key in range(4)]
            assert handle.submitted.restored_states["seen.seen"] == "compatible"


def forgotten(key: Any, value: Any) -> Any:
    value += 1


async def awaited(key: Any, value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            forgotten,
            r"test_editing.py:\d+\) returns nothing, and None removes an entry: is a `return` missing\? To remove",
        ),
        (lambda key, value: None, r"returns nothing.*write drop\(\)"),
        (awaited, r"wants a plain function of \(key, value\), found `async def`"),
        ({1: 2}, r"wants a function of \(key, value\), found \{1: 2\}"),
    ],
)
def test_a_change_that_would_remove_every_entry_is_refused(tmp_path: Path, change: Any, match: str) -> None:
    """They went without a word."""
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()
    with pytest.raises(InvalidEdit, match=match):
        edit.operator("declared").state("value").update(change)


def test_one_text_is_not_taken_for_the_keys_of_its_letters(tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()
    with pytest.raises(
        InvalidEdit, match=r"remove\(\.\.\.\) wants a list of keys, found 'JFK': write remove\(\['JFK'\]\)"
    ):
        edit.operator("declared").state("value").remove("JFK")


@pytest.mark.parametrize("time_ms", [2**63, -(2**63) - 1, 2**70, 1.5, True])
def test_a_timer_that_no_job_could_set_is_refused(tmp_path: Path, time_ms: Any) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()
    edit.operator("declared").timers("event").put([("JFK", time_ms)])
    wanted = r"wanted a time in ms since the epoch, within 64 bits, or \(time, namespace\)"
    with pytest.raises(InvalidEdit, match=wanted):
        edit.write()


@pytest.mark.parametrize("uid", ["", " ", None, 5])
def test_an_operator_keeps_a_uid_that_a_program_can_have(tmp_path: Path, uid: Any) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one")).edit()
    with pytest.raises(InvalidEdit, match=r"^declared: rename wants the uid of an operator, found"):
        edit.operator("declared").rename(uid)
