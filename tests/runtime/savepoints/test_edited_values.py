"""Edited values of every shape: records of any class, lists and maps, their times, and what is no such value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest

from understudy import (
    InvalidEdit,
    KeyedOperator,
    ListState,
    MapState,
    Savepoint,
    Ttl,
    ValueState,
)
from understudy.messages import CheckpointId, OperatorId
from understudy.runtime.savepoints import edited_entries
from understudy.state import (
    HeapBackend,
    SubtaskSnapshot,
)

from .made import (
    MAX_PARALLELISM,
    Clock,
    Subtask,
    by_key,
    restored,
    savepoint,
)


class Parts(KeyedOperator):
    """Lists and maps, with a TTL and without."""

    recent = ListState(int, ttl=Ttl(hours=1))
    seen = MapState(str, int, ttl=Ttl(hours=1))
    items = ListState(int)
    table = MapState(str, int)

    def process(self, record: Any, out: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("name", ["recent", "seen", "items", "table"])
@pytest.mark.parametrize("how", ["put", "update"])
def test_a_list_or_map_without_parts_is_held_by_no_key(how: str, name: str, tmp_path: Path) -> None:
    """As in a job: an update to [] is a clear."""
    declared: Any = getattr(Parts, name)
    full: Any = {"a": 1} if isinstance(declared, MapState) else [1]
    new = Savepoint.new()
    new.add("parts", Parts).state(name).put({"kept": full, "emptied": full})
    edit = Savepoint.open(new.write(tmp_path)).edit()
    if how == "put":
        edit.operator("parts").state(name).put({"emptied": type(full)(), "new": type(full)()})
    else:
        edit.operator("parts").state(name).update(lambda key, value: type(full)() if key == "emptied" else value)
    opened = Savepoint.open(edit.write())
    assert by_key(opened, "parts", name) == {"kept": full}
    (backend,) = restored(opened, "parts", 1)
    backend.state(declared)
    assert list(backend.keys(name)) == ["kept"]


@dataclass(frozen=True, slots=True)
class Slotted:
    origin: str


@dataclass(frozen=True)
class Remembering:
    origin: str

    @cached_property
    def lower(self) -> str:
        return self.origin.lower()


@attrs.frozen
class Attrs:
    origin: str


class Extra(pydantic.BaseModel, extra="allow"):
    origin: str


@pytest.mark.parametrize(
    "record",
    [Slotted("JFK"), Remembering("JFK"), Attrs("JFK"), Extra(origin="JFK", gate=4)],  # type: ignore[call-arg]
    ids=lambda record: type(record).__name__,
)
def test_a_record_is_put_as_an_object_of_its_class(record: Any, tmp_path: Path) -> None:
    getattr(record, "lower", None)  # one of them remembers it
    held = ValueState(type(record), name="held")
    new = Savepoint.new()
    new.add("records").declare(held).put({1: record})
    (backend,) = restored(Savepoint.open(new.write(tmp_path)), "records", 1)
    state: Any = backend.state(held)
    backend.current_key = 1
    assert state.value() == record


class Ticking(Clock):
    """Each look at it is 100 ms later."""

    now_ms = 0

    def processing_ms(self) -> int:
        self.now_ms += 100
        return self.now_ms


def _in_place(value: dict[str, int]) -> dict[str, int]:
    del value["old"]
    value["other"] = 3
    return value


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda value: {"new": 7, "old": value["old"]}, {"old": "old", "new": "new"}),
        (lambda value: {"other": 3, "old": value["old"]}, {"old": "old", "other": "new"}),
        (lambda value: {"old": 5}, {"old": "old"}),
        (_in_place, {"new": "new", "other": "new"}),
        (lambda value: [("new", 7), ("old", 1)], {"old": "old", "new": "new"}),  # as Arrow gives a map back
        (lambda value: [("new", 7), ("old", 1), ("new", 8)], {"old": "old", "new": "new"}),
    ],
)
def test_entries_of_a_map_keep_their_times_when_others_come_and_go(
    change: Callable[[dict[str, int]], Any], left: dict[str, str], tmp_path: Path
) -> None:
    """New ones are as old as the newest."""

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = HeapBackend(subtask.groups.first, subtask.groups.last, MAX_PARALLELISM)
        backend.clock = Ticking()
        backend.current_key = "JFK"
        state = backend.state(Parts.seen)
        state.put("old", 1)
        state.put("new", 2)
        snapshot.add(OperatorId("parts"), backend.snapshot(CheckpointId(1)))

    opened = Savepoint.open(savepoint(tmp_path, {"parts": fill}, parallelism=1))
    (row,) = opened.operator("parts").state("seen").rows()
    was = dict(zip(row["value"], row["updated_ms"], strict=True))
    assert was["old"] < was["new"]
    edit = opened.edit()
    edit.operator("parts").state("seen").update(lambda key, value: change(value))
    (row,) = Savepoint.open(edit.write()).operator("parts").state("seen").rows()
    found = dict(zip(row["value"], row["updated_ms"], strict=True))
    assert found == {name: was[as_old] for name, as_old in left.items()}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda items: [item + 10 for item in items], [0, 1]),
        (lambda items: [*items, 3], [1, 1, 1]),
        (lambda items: items[:1], [1]),
    ],
    ids=["as many", "more", "fewer"],
)
def test_items_of_a_list_keep_their_times_as_long_as_there_are_as_many(
    change: Callable[[list[int]], list[int]], left: list[int], tmp_path: Path
) -> None:
    """Of others nobody knows which they were: they are as old as the newest."""
    numbers = ListState(int, name="numbers", ttl=Ttl(minutes=1))

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = HeapBackend(subtask.groups.first, subtask.groups.last, MAX_PARALLELISM)
        backend.clock = Ticking()
        backend.current_key = "JFK"
        state = backend.state(numbers)
        state.add(1)
        state.add(2)
        snapshot.add(OperatorId("parts"), backend.snapshot(CheckpointId(1)))

    opened = Savepoint.open(savepoint(tmp_path, {"parts": fill}, parallelism=1))
    (row,) = opened.operator("parts").state("numbers").rows()
    was = row["updated_ms"]
    assert was[0] < was[1]
    edit = opened.edit()
    edit.operator("parts").state("numbers").update(lambda key, items: change(items))
    (row,) = Savepoint.open(edit.write()).operator("parts").state("numbers").rows()
    assert row["updated_ms"] == [was[index] for index in left]


def test_a_map_that_is_put_as_pairs_has_a_time_for_each_entry(tmp_path: Path) -> None:
    new = Savepoint.new()
    new.add("parts", Parts).state("seen").put({"JFK": [("a", 1), ("b", 2), ("a", 3)]})
    (row,) = Savepoint.open(new.write(tmp_path)).operator("parts").state("seen").rows()
    assert dict(row["value"]) == {"a": 3, "b": 2}
    assert len(row["updated_ms"]) == 2


@pytest.mark.parametrize("how", ["put", "update"])
@pytest.mark.parametrize(("name", "value"), [("seen", [1, 2]), ("seen", [([], 1)]), ("seen", 5), ("recent", 5)])
def test_what_is_no_map_or_list_is_refused_with_its_place(how: str, name: str, value: Any, tmp_path: Path) -> None:
    new = Savepoint.new()
    new.add("parts", Parts).state(name).put({"JFK": {"a": 1} if name == "seen" else [1]})
    edit = Savepoint.open(new.write(tmp_path)).edit()
    state = edit.operator("parts").state(name)
    if how == "put":
        state.put({"JFK": value})
    else:
        state.update(lambda key, was: value)
    with pytest.raises(InvalidEdit, match=rf"parts\.{name}, key 'JFK': wanted a (dict|list).*found"):
        edit.write()


def test_a_list_without_items_is_given_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No job holds one; an edit of another version may have written it."""
    monkeypatch.setattr(edited_entries, "_is_empty", lambda *_: False)
    new = Savepoint.new()
    new.add("parts", Parts).state("recent").put({"JFK": []})
    edit = Savepoint.open(new.write(tmp_path)).edit()
    monkeypatch.undo()
    edit.operator("parts").state("recent").update(lambda key, value: [1, 2])
    (row,) = Savepoint.open(edit.write()).operator("parts").state("recent").rows()
    assert row["value"] == [1, 2]
    assert len(row["updated_ms"]) == 2


@pytest.mark.parametrize(
    ("held", "named", "kinds"),
    [
        ([1, 2], "1", "the key '1', and all keys that operator 'counts' holds are numbers, as "),
        (["JFK"], b"JFK", "the key b'JFK', and all keys that operator 'counts' holds are texts, as 'JFK'"),
        ([("a", 1)], ("a", "1"), r"the key \('a', '1'\), .* are tuples of texts, numbers, as \('a', 1\)"),
    ],
)
@pytest.mark.parametrize("how", ["put", "remove"])
def test_a_key_of_another_kind_than_all_that_are_held_is_warned_of(
    held: list[Any], named: Any, kinds: str, how: str, tmp_path: Path
) -> None:
    """It would be an entry that no record finds, or remove nothing, without a word."""
    with pytest.warns(UserWarning, match=kinds):
        _edited_again(held, named, how, tmp_path)


@pytest.mark.parametrize(
    ("held", "named"),
    [([1, "a", 2], "b"), ([], "a"), ([1], 2.0), ([("a", None)], ("b", 1)), ([1], 2), ([("a", 1)], ("b", 2.5))],
)
@pytest.mark.parametrize("how", ["put", "remove"])
def test_of_a_key_that_may_be_meant_nothing_is_said(
    held: list[Any], named: Any, how: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    _edited_again(held, named, how, tmp_path)
    assert not [each.message for each in recwarn]


def _edited_again(held: list[Any], named: Any, how: str, tmp_path: Path) -> None:
    new = Savepoint.new()
    new.add("counts").declare(ValueState(int, name="seen")).put(dict.fromkeys(held, 1))
    again = Savepoint.open(new.write(tmp_path)).edit()
    seen = again.operator("counts").state("seen")
    if how == "put":
        seen.put({named: 5})
    else:
        seen.remove([named])
    again.write()
