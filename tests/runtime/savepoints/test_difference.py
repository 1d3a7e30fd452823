"""What `diff` says of two savepoints, with the changes known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from understudy import NotComparable, Savepoint
from understudy.runtime.savepoints.difference import StateChange, _changes

from ...examples import examples
from . import made
from .made import ALL, declared_states, lists, savepoint


def test_a_savepoint_is_the_same_as_itself_taken_again_with_another_parallelism(tmp_path: Path) -> None:
    one = savepoint(tmp_path / "one", {name: ALL[name] for name in ("declared", "aggregation", "rows")})
    other = savepoint(
        tmp_path / "other", {name: ALL[name] for name in ("declared", "aggregation", "rows")}, parallelism=3
    )
    found = Savepoint.open(one).diff(other)
    assert found.is_same
    assert list(found.changes()) == []
    assert sum(each.same for each in found.states()) == sum(table.count() for table in Savepoint.open(one).tables())


def test_each_change_is_one_of_its_key(tmp_path: Path) -> None:
    before = savepoint(tmp_path / "one", {"declared": declared_states([1, 2, "JFK"]), "lists": lists(2)})
    after = savepoint(
        tmp_path / "two", {"declared": declared_states([1, 2, "LGA"], lambda at: at * 10 + at % 2), "lists": lists(3)}
    )
    found = Savepoint.open(before).diff(after)
    assert sorted(found.changes("declared", "value"), key=str) == [
        StateChange("declared", "value", "added", "LGA", None, 20),
        StateChange("declared", "value", "changed", 2, 10, 11),
        StateChange("declared", "value", "removed", "JFK", 20, None),
    ]
    counted = {each.state: each for each in found.states()}
    assert (counted["value"].added, counted["value"].removed, counted["value"].changed) == (1, 1, 1)
    assert counted["value"].same == 1
    assert list(found.changes("lists")) == [
        StateChange("lists", "noted", "added", (0, 2), None, 2),
        StateChange("lists", "noted", "added", (1, 2), None, 102),
    ]


@pytest.mark.parametrize(
    ("before", "after"), [({"a": 1, "b": 2}, {"b": 2, "a": 1}), (1, 1.0), (float("nan"), float("nan"))], ids=repr
)
def test_equal_values_are_no_change_however_they_are_written(before: object, after: object) -> None:
    class Table:
        shares = (0,)

        def __init__(self, value: object) -> None:
            self.held = {"other": 0, "key": value}

        def identified(self, share: int) -> dict[str, object]:
            return self.held

        def described(self, value: object) -> object:
            return value

    one, other = Table(before), Table(after)
    other.held["other"] = 1  # else they are compared as a whole
    changes = [each for each in _changes("operator", "state", one, other) if isinstance(each, StateChange)]  # type: ignore[arg-type]
    assert [each.key for each in changes] == ["other"]


def test_an_operator_of_one_of_them_alone_is_added_or_removed_as_a_whole(tmp_path: Path) -> None:
    both = savepoint(tmp_path / "one", {"declared": declared_states([1]), "lists": lists(1)})
    one = savepoint(tmp_path / "two", {"lists": lists(1)})
    gone = Savepoint.open(both).diff(one)
    assert {each.state: each.removed for each in gone.states() if each.operator == "declared"}["value"] == 1
    come = Savepoint.open(one).diff(both)
    assert {each.state: each.added for each in come.states() if each.operator == "declared"}["value"] == 1


def test_key_groups_of_another_number_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = savepoint(tmp_path / "one", {"declared": declared_states([1])})
    monkeypatch.setattr(made, "MAX_PARALLELISM", 32)
    after = savepoint(tmp_path / "two", {"declared": declared_states([1])})
    with pytest.raises(NotComparable, match=r"max_parallelism 16 .* and 32"):
        Savepoint.open(before).diff(after).states()


keyed_numbers = st.dictionaries(st.integers(0, 40) | st.text("ab", max_size=2), st.integers(-5, 5), max_size=20)


@examples(30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(before=keyed_numbers, after=keyed_numbers)
def test_the_diff_of_any_two_states_is_that_of_two_dicts(
    before: dict[object, int], after: dict[object, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("diff")
    paths = [
        savepoint(root / name, {"declared": declared_states(list(held), list(held.values()).__getitem__)})
        for name, held in (("one", before), ("two", after))
    ]
    found = list(Savepoint.open(paths[0]).diff(paths[1]).changes("declared", "value"))
    assert {each.key: each.before for each in found if each.what == "removed"} == {
        key: value for key, value in before.items() if key not in after
    }
    assert {each.key: each.after for each in found if each.what == "added"} == {
        key: value for key, value in after.items() if key not in before
    }
    assert {each.key: (each.before, each.after) for each in found if each.what == "changed"} == {
        key: (value, after[key]) for key, value in before.items() if key in after and after[key] != value
    }
