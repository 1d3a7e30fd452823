"""Lookups: what is found, how often the database is asked, and how old an answer may be."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import LocalCluster, StreamEnvironment
from understudy.runtime.api.errors import InvalidProgram
from understudy.runtime.connectors.sql.errors import NoSuchTable, TableMismatch
from understudy.runtime.connectors.sql.lookup import LookupCache, SqlTable

from ..harness import ManualClock
from .databases import asked

pytestmark = pytest.mark.processes

# -- the cache


def test_rows_and_their_absence_are_kept_for_their_time() -> None:
    clock = ManualClock()
    cache = LookupCache(clock, 10, keep_ms=100, miss_ms=10)
    cache.put((1,), [("a",)])
    cache.put((2,), [])
    assert (cache.get((1,)), cache.get((2,)), cache.get((3,))) == ([("a",)], [], None)
    clock.ms = 10
    assert (cache.get((1,)), cache.get((2,))) == ([("a",)], None)
    clock.ms = 100
    assert cache.get((1,)) is None
    assert len(cache) == 0


def test_the_key_that_was_not_asked_for_the_longest_goes_first() -> None:
    cache = LookupCache(ManualClock(), 2, keep_ms=100, miss_ms=100)
    cache.put((1,), [("a",)])
    cache.put((2,), [("b",)])
    cache.get((1,))
    cache.put((3,), [("c",)])
    assert [cache.get((key,)) for key in (1, 2, 3)] == [[("a",)], None, [("c",)]]


@pytest.mark.parametrize(("most", "miss_ms"), [(0, 100), (10, 0)])
def test_what_is_not_to_be_kept_is_not(most: int, miss_ms: int) -> None:
    cache = LookupCache(ManualClock(), most, keep_ms=100, miss_ms=miss_ms)
    cache.put((1,), [])
    assert cache.get((1,)) is None


# -- the join


@pytest.fixture
def url(url: str) -> str:
    """With a table."""
    asked(
        url,
        "CREATE TABLE products (shop integer, product varchar(9), origin varchar(9))",
        "INSERT INTO products VALUES (1, 'tea', 'Assam'), (1, 'milk', 'Jura'), (2, 'tea', 'Nuwara'), (1, 'tea', 'Uji')",
    )
    return url


def joined(records: list[Any], *tables: Any, **how: Any) -> list[Any]:
    env = StreamEnvironment()
    env.from_collection(records).lookup_join(*tables, **how).collect(name="joined")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        return [dict(row.asdict()) for row in job.results("joined")]


def test_each_record_meets_all_rows_with_its_key(url: str) -> None:
    orders = [{"shop": 1, "product": "tea"}, {"shop": 2, "product": "milk"}, {"shop": None, "product": "tea"}]
    found = joined(orders, SqlTable(url, "products"), on=["shop", "product"])
    assert sorted(found[:2], key=lambda row: row["origin"]) == [
        {"shop": 1, "product": "tea", "origin": "Assam"},
        {"shop": 1, "product": "tea", "origin": "Uji"},
    ]
    assert found[2:] == [{**orders[1], "origin": None}, {**orders[2], "origin": None}]


def test_a_row_that_the_database_finds_under_a_key_that_no_record_has_is_named(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As that of the number 1 for the text "1"."""
    table = SqlTable(url, "products", columns=["shop", "origin"])
    assert joined([{"shop": "1"}, {"shop": "7"}] * 3, table, on="shop", how="inner") == []
    (said,) = [each.getMessage() for each in caplog.records if "another key" in each.getMessage()]
    assert "such as ('1',) the database has found rows of the key (1,)" in said
    assert ".map(...) before lookup_join" in said


def test_keys_that_are_equal_are_found_and_nothing_is_said(url: str, caplog: pytest.LogCaptureFixture) -> None:
    table = SqlTable(url, "products", columns=["shop", "origin"])
    found = joined([{"shop": 2}, {"shop": 7}, {"shop": None}], table, on="shop", how="inner")
    assert [each["origin"] for each in found] == ["Nuwara"]
    assert "another key" not in caplog.text


def test_other_names_a_query_and_only_what_matches(url: str) -> None:
    table = SqlTable(url, query="SELECT product, max(origin) AS origin FROM products GROUP BY product")
    orders = [{"what": "milk", "origin": "here"}, {"what": "salt", "origin": "here"}]
    found = joined(orders, table, left_on="what", right_on="product", how="inner")
    assert found == [{"what": "milk", "origin": "here", "product": "milk", "origin_right": "Jura"}]


def test_mistakes_show_when_the_stream_is_built(url: str) -> None:
    stream = StreamEnvironment().from_collection([{"product": "tea"}])
    with pytest.raises(NoSuchTable, match="no table goods; it has products"):
        stream.lookup_join(SqlTable(url, "goods"), on="product")
    with pytest.raises(TableMismatch, match="no column 'item'"):
        stream.lookup_join(SqlTable(url, "products"), on="item")
    with pytest.raises(InvalidProgram, match="inner"):
        stream.lookup_join(SqlTable(url, "products"), on="product", how="right")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one of both"):
        SqlTable(url)
    with pytest.raises(ValueError, match="cache_rows"):
        SqlTable(url, "products", cache_rows=-1)
