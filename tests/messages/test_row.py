"""Rows and DictRows: one way to read a record, wherever it comes from."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import cloudpickle
import pytest

from understudy.messages import DictRow, MissingColumn, Row, dict_rows, make_rows, pack_plain, row_type, unpack_plain

NAMES = ("origin", "delay")
VALUES = ("JFK", 2.0)

RECORDS = [row_type(NAMES)(*VALUES), DictRow(zip(NAMES, VALUES, strict=True))]


@pytest.fixture(params=RECORDS, ids=["Row", "DictRow"])
def record(request: pytest.FixtureRequest) -> Any:
    return copy.copy(request.param)


def test_every_record_is_read_by_brackets_and_by_attribute(record: Any) -> None:
    assert (record["origin"], record["delay"]) == (record.origin, record.delay) == VALUES


def test_every_record_becomes_a_dict(record: Any) -> None:
    wanted = dict(zip(NAMES, VALUES, strict=True))
    assert dict(record) == {**record} == record.asdict() == wanted
    assert type(record.asdict()) is dict
    assert tuple(record.keys()) == NAMES


def test_get_takes_a_default(record: Any) -> None:
    assert (record.get("delay"), record.get("gate"), record.get("gate", "B2")) == (2.0, None, "B2")


def test_a_wrong_name_is_told_with_the_names_there_are(record: Any) -> None:
    with pytest.raises(KeyError) as told:
        record["delya"]
    assert str(told.value) == "no column 'delya'; the row has origin, delay; did you mean 'delay'?"
    with pytest.raises(MissingColumn) as told:
        record["gate"]
    assert str(told.value) == "no column 'gate'; the row has origin, delay"
    with pytest.raises(AttributeError, match=r"origin, delay.*'?delya|delya.*origin, delay"):
        _ = record.delya
    assert not hasattr(record, "delya")
    assert not hasattr(record, "__array__")


@pytest.mark.parametrize("way", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_every_record_can_be_pickled_and_copied(record: Any, way: Any) -> None:
    for again in (way.loads(way.dumps(record)), copy.deepcopy(record), unpack_plain(pack_plain(record))):
        assert again == record
        assert type(again) is type(record)


class TestRow:
    def test_it_is_a_tuple_with_positions(self) -> None:
        row = RECORDS[0]
        origin, delay = row
        assert (origin, delay) == row == VALUES
        assert (row[0], row[-1], row[:1]) == ("JFK", 2.0, ("JFK",))
        for wrong in (2, -3):
            with pytest.raises(IndexError):
                row[wrong]
        with pytest.raises(TypeError):
            row[1.5]

    def test_it_is_shown_with_its_names(self) -> None:
        assert repr(RECORDS[0]) == "Row(origin='JFK', delay=2.0)"
        assert type(RECORDS[0]).__qualname__ == "Row"

    def test_brackets_reach_a_column_of_any_name(self) -> None:
        names = ("dep delay", "class", "_hidden", "keys", "get", "asdict", "count", "_columns", "ünï", "")
        (row,) = make_rows(names, [tuple(range(len(names)))])
        assert [row[name] for name in names] == list(range(len(names)))
        assert (row._1, row._2, row.keys, row.get, row.asdict, row.count) == (1, 2, 3, 4, 5, 6)
        assert Row.asdict(row) == dict(zip(names, range(len(names)), strict=True))

    def test_of_two_columns_of_one_name_the_first_is_given(self) -> None:
        row = row_type(("n", "n"))(1, 2)
        assert (row["n"], row.n, row[1], row._1) == (1, 1, 2, 2)

    @pytest.mark.parametrize("names", [(), ("\0",), ("\ud800",), tuple(f"column_{n:03}" for n in range(500))])
    def test_any_names_make_a_class(self, names: tuple[str, ...]) -> None:
        row = row_type(names)(*range(len(names)))
        with pytest.raises(AttributeError, match="no attribute 'gone'"):
            _ = row.gone
        with pytest.raises(KeyError):
            row["gone"]
        assert [row[name] for name in names] == list(row)


class TestDictRow:
    def test_it_is_the_dict_in_every_respect(self) -> None:
        plain = dict(zip(NAMES, VALUES, strict=True))
        record = DictRow(plain)
        assert isinstance(record, dict)
        assert record == plain
        assert (repr(record), json.dumps(record)) == (repr(plain), json.dumps(plain))
        assert type({**record}) is type(record | {"gate": 1}) is type(record.copy()) is dict

    def test_items_come_after_the_methods_of_dict(self) -> None:
        record = DictRow(items=1, values=2)
        assert (record["items"], list(record.items())) == (1, [("items", 1), ("values", 2)])

    def test_items_are_set_by_brackets(self) -> None:
        record = DictRow(delay=1)
        record["delay"] = 2
        assert record.delay == 2
        with pytest.raises(AttributeError, match=r"record\['delay'\] = "):
            record.delay = 3

    def test_only_plain_dicts_become_rows_and_values_are_left_alone(self) -> None:
        class Own(dict[str, int]):
            pass

        records = [{"inner": {"a": 1}}, Own(a=1), 3, RECORDS[0]]
        made = dict_rows(records)
        assert list(map(type, made)) == [DictRow, Own, int, type(RECORDS[0])]
        assert type(made[0].inner) is dict
        assert made == records
        assert dict_rows(["a"]) == ["a"]

    def test_nested_dicts_and_rows_keep_their_types_as_plain_data(self) -> None:
        value = {"last": DictRow(a=[DictRow(b={"c": 1})])}
        again = unpack_plain(pack_plain(value))
        assert again == value
        assert type(again) is type(again["last"].a[0].b) is dict
        assert type(again["last"]) is type(again["last"]["a"][0]) is DictRow
