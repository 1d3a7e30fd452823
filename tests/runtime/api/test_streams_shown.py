"""What a stream says of itself when it is printed, counted, looped over or asked whether it is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, Operator, OutputTag, StreamEnvironment, tumbling

SEEN = "Its records are where the job runs: to see them, write .print() or .collect(name='rows') behind it, and "


def by_name(record: Any) -> Any:
    return record["name"]


def doubled(record: Any) -> Any:
    return record


class Checked(Operator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


def numbers() -> Any:
    return StreamEnvironment().from_collection([1, 2], name="numbers").map(doubled, name="double", parallelism=2)


def rows() -> Any:
    return StreamEnvironment().from_collection([{"name": "a", "size": 1}], name="rows")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (numbers, "<DataStream from operator 'double' (parallelism 2). " + SEEN),
        (rows, "<DataStream from source 'rows' (parallelism 1). " + SEEN),
        (lambda: rows().map(doubled, name="m"), "<DataStream from operator 'm' (parallelism of its input). "),
        (lambda: numbers().rebalance(), "<DataStream rebalanced, from operator 'double' (parallelism 2). "),
        (lambda: numbers().broadcast(), "<DataStream broadcast, from operator 'double' (parallelism 2). "),
        (lambda: rows().key_by("name", "size"), "<KeyedStream keyed by 'name', 'size', from source 'rows' "),
        (lambda: rows().key_by(by_name), "<KeyedStream keyed by by_name(record), from source 'rows' "),
        (lambda: rows().key_by(lambda row: row["name"]), "<KeyedStream keyed by a lambda, from source 'rows' "),
        (
            lambda: numbers().process(Checked, name="checked").side_output(OutputTag("bad")),
            "<DataStream from side output 'bad' of operator 'checked' (default parallelism). ",
        ),
        (
            lambda: (stream := rows()).union(stream.map(doubled, name="again", parallelism=3)),
            "<DataStream from source 'rows' (parallelism 1) and operator 'again' (parallelism 3). ",
        ),
        (
            lambda: StreamEnvironment().from_arrow(pa.table({"x": [1], "y": [2]}), name="table"),
            "<DataStream from source 'table' (parallelism 1), with columns x, y. ",
        ),
        (
            lambda: rows().print(name="shown"),
            "<the end of a stream in sink 'shown' (parallelism of its input); cluster.submit(env).wait() runs",
        ),
        (
            lambda: rows().key_by("name").window(tumbling(minutes=1)),
            "<WindowedStream of 'rows' in windows Tumbling(size_ms=60000, ",
        ),
        (lambda: (stream := numbers()).connect(stream), "<ConnectedStreams of 'double' with 'double': write process("),
    ],
)
def test_a_stream_that_is_printed_says_what_it_is(make: Callable[[], Any], said: str) -> None:
    stream = make()
    assert repr(stream).startswith(said)
    assert f"{stream}" == str(stream) == repr(stream)
    assert "\n" not in repr(stream)
    assert " object at " not in repr(stream)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (len, "no number of them: write key_by(...).aggregate(count=Count())"),
        (list, "write map(...), filter(...) or process(...)"),
        (lambda stream: stream[0], "write map(...), filter(...) or process(...)"),
        (lambda stream: stream[:3], "write map(...), filter(...) or process(...)"),
        (lambda stream: 3 in stream, "write map(...), filter(...) or process(...)"),
    ],
)
@pytest.mark.parametrize("make", [numbers, lambda: rows().key_by("name")], ids=["plain", "keyed"])
def test_what_needs_the_records_of_a_stream_says_where_they_are(
    make: Callable[[], Any], use: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(said)) as refused:
        use(make())
    assert "before its job runs" in str(refused.value)


@pytest.mark.parametrize("make", [numbers, lambda: rows().key_by("name")], ids=["plain", "keyed"])
def test_an_optional_stream_that_is_there_is_true(make: Callable[[], Any]) -> None:
    assert bool(make())


@pytest.mark.parametrize("method", ["join", "interval_join", "temporal_join", "window_join", "co_group"])
@pytest.mark.parametrize(("named", "right"), [("on", "id"), ("left_on", "other_id"), ("by", "id")])
def test_the_key_of_a_join_is_that_of_key_by(method: str, named: str, right: str) -> None:
    stream = rows()
    keyed = stream.key_by("name")
    said = f"{method} has no argument '{named}': it is what both are keyed by: write left.key_by(\"id\").{method}("
    with pytest.raises(TypeError, match=re.escape(f'{said}right.key_by("{right}"), ...)')):
        getattr(keyed, method)(keyed, **{named: "name"})
    with pytest.raises(AttributeError, match=re.escape(f'both streams before it, as in left.key_by("id").{method}(')):
        getattr(stream, method)(keyed)


def test_the_suffix_of_other_libraries_is_told_as_it_is_called_here() -> None:
    keyed = rows().key_by("name")
    with pytest.raises(TypeError, match='write suffix="_right"'):
        keyed.join(keyed, suffixes=("_x", "_y"))
