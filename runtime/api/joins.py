"""What the joins of a program become: the operator for these keys and columns, or what is wrong with them.

Where the columns of all inputs are known and keys are columns the operator works on columns; else it takes records one
by one, and gives pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isfunction
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from ...actors.joins.deduplicate import Deduplicate
from ...actors.joins.interval_join import IntervalJoin, TimeInterval
from ...actors.joins.joined_columns import How, checked_how
from ...actors.joins.lookup_join import FixedLookupJoin, LookupJoin
from ...actors.joins.record_deduplicate import RecordDeduplicate
from ...actors.joins.record_interval_join import RecordIntervalJoin
from ...actors.joins.record_join import RecordJoin
from ...actors.joins.record_temporal_join import RecordTemporalJoin
from ...actors.joins.record_top_n import RecordTopN, of_field
from ...actors.joins.regular_join import RegularJoin
from ...actors.joins.temporal_join import TemporalJoin
from ...actors.joins.time_to_live import TimeToLive
from ...actors.joins.top_n import TopN, TopRows
from ...actors.joins.window_join import TumblingWindows, WindowJoin
from ...actors.operators.operator import Operator
from ...actors.windows.assigners import Tumbling
from ...actors.windows.window_settings import WindowSettings
from ...messages import shown
from ..connectors import SqlLookupJoin, SqlTable
from .errors import InvalidProgram
from .key_kinds import Kinds, check_same_kinds, kinds_of
from .operator_checks import function_of
from .samples import check_names
from .stream_graph import StreamEdge

TimeDomain = Literal["event", "processing"]


class Keyed(NamedTuple):
    """A keyed stream, as far as a join has to know it."""

    keys: Sequence[Any]
    schema: pa.Schema | None
    edges: Sequence[StreamEdge]

    @property
    def kinds(self) -> Sequence[Kinds | None]:
        """Of the values of its keys."""
        return kinds_of(self.keys, self.edges)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of its key columns, if its columns are known and keys are columns."""
        if self.schema is None or not all(isinstance(key, str | int) for key in self.keys):
            return None
        return tuple(self.schema.names[key] if isinstance(key, int) else key for key in self.keys)


def regular_join(
    left: Keyed, right: Keyed, how: How, suffix: str, ttl_ms: int | None, ttl_time: TimeDomain
) -> Operator:
    """Raises InvalidProgram."""
    how = _how("join", how)
    ttl = _time_to_live("join: ttl_ms", ttl_ms, ttl_time)
    columns = columns_of_both("join", left, right)
    return RegularJoin(*columns, how, suffix, ttl) if columns else RecordJoin(how, ttl)


def interval_join(
    left: Keyed, right: Keyed, bounds: tuple[int, int], exclusive: tuple[bool, bool], how: How, suffix: str
) -> Operator:
    """Raises InvalidProgram."""
    how = _how("interval_join", how)
    try:
        interval = TimeInterval(*bounds)
        interval = TimeInterval(interval.lower_ms + bool(exclusive[0]), interval.upper_ms - bool(exclusive[1]))
    except ValueError as error:
        raise InvalidProgram(f"interval_join: {error}") from error
    columns = columns_of_both("interval_join", left, right)
    return IntervalJoin(*columns, how, suffix, interval) if columns else RecordIntervalJoin(how, interval)


def temporal_join(left: Keyed, versions: Keyed, how: Literal["inner", "left"], suffix: str) -> Operator:
    """Raises InvalidProgram."""
    _inner_or_left("temporal_join", how)
    columns = columns_of_both("temporal_join", left, versions)
    return TemporalJoin(*columns, how, suffix) if columns else RecordTemporalJoin(how == "left")


def lookup_join(
    table: Any,
    keys: tuple[str | Sequence[str] | None, str | Sequence[str] | None, str | Sequence[str] | None],
    how: Literal["inner", "left"],
    suffix: str,
) -> Operator:
    """`keys`: on, left_on and right_on. Raises InvalidProgram."""
    _inner_or_left("lookup_join", how)
    on, left_on, right_on = keys
    if (on is None) == (left_on is None and right_on is None) or (left_on is None) != (right_on is None):
        raise InvalidProgram("lookup_join: wanted the key columns as on=..., or as left_on=... and right_on=...")
    left, right = (_names("lookup_join", each if on is None else on) for each in (left_on, right_on))
    if isinstance(table, SqlTable):
        return SqlLookupJoin(table, left, right, how, suffix)
    if isinstance(table, pa.Table):
        batches = table.combine_chunks().to_batches()
        table = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    if isinstance(table, pa.RecordBatch):
        return FixedLookupJoin(left, right, how, suffix, table)
    return LookupJoin(left, right, how, suffix)


def window_join(left: Keyed, right: Keyed, assigner: Any, how: How, suffix: str) -> Operator | None:
    """None: windows of tagged records do it. Raises InvalidProgram, or InvalidWindow for what is no assigner."""
    how = _how("window_join", how)
    WindowSettings.of(assigner)
    columns = columns_of_both("window_join", left, right)
    if columns is None or type(assigner) is not Tumbling or assigner.tz is not None or assigner.time != "event":
        return None
    return WindowJoin(*columns, how, suffix, TumblingWindows(assigner.size_ms, assigner.offset_ms))


def deduplicate(stream: Keyed, keep: str, within_ms: int | None, within_time: TimeDomain) -> Operator:
    """Raises InvalidProgram."""
    within = _time_to_live("deduplicate: within_ms", within_ms, within_time)
    columns = stream.columns
    if keep == "last":
        if within_ms is not None:
            raise InvalidProgram("deduplicate: within_ms goes with keep='first': every newer record replaces the last")
        if columns is None:
            return RecordTopN(1, None, True, ranked=False)
        return TopN(columns, TopRows(1, (), (), None, newest_first=True))
    if keep != "first":
        raise InvalidProgram(f"deduplicate: wanted keep='first' or 'last', found {shown(keep)}")
    return RecordDeduplicate(within) if columns is None else Deduplicate(columns, within)


def top_n(
    stream: Keyed,
    n: int,
    by: str | Sequence[str] | Callable[[Any], Any],
    descending: bool | Sequence[bool],
    rank: str | None,
) -> Operator:
    """Raises InvalidProgram."""
    if type(n) is not int or n < 1:
        raise InvalidProgram(f"top_n: wanted a number of records above 0, found {shown(n)}")
    columns = stream.columns
    if callable(by):
        return RecordTopN(n, function_of(by, "top_n"), _one_way(descending, 1), ranked=rank is not None)
    names = _names("top_n", by)
    if columns is None:
        check_names("top_n", names, stream.edges)
        return RecordTopN(n, of_field(names), _one_way(descending, len(names)), ranked=rank is not None)
    ways = (descending,) * len(names) if isinstance(descending, bool) else tuple(descending)
    if len(ways) != len(names):
        raise InvalidProgram(f"top_n: wanted descending as one bool, or one for each of {names}, found {descending!r}")
    return TopN(columns, TopRows(n, names, ways, rank))


def columns_of_both(method: str, left: Keyed, right: Keyed) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The key columns of both sides; None where one has none. Raises InvalidProgram."""
    if len(left.keys) != len(right.keys):
        raise InvalidProgram(
            f"{method}: the first stream is keyed by {_listed(left.keys)} and the second by {_listed(right.keys)}, so "
            "no two keys would be equal: key both by as many parts"
        )
    first, second = left.columns, right.columns
    if first is not None and second is not None:
        return first, second
    check_meeting(method, left, right)
    return None


def check_meeting(method: str, left: Keyed, right: Keyed) -> None:
    """Raises InvalidProgram where no key of the one side can equal one of the other."""
    if len(left.keys) == len(right.keys):
        check_same_kinds(method, left.kinds, right.kinds)


def _listed(keys: Sequence[Any]) -> str:
    return ", ".join("a function" if callable(key) else repr(key) for key in keys)


def _how(method: str, how: Any) -> How:
    if isfunction(how):
        raise InvalidProgram(
            f"{method}: found a function: the records that meet go on together, as rows of both or as pairs "
            f"(left, right): write map(...) behind {method}(other) for what becomes of them"
        )
    try:
        return checked_how(how)
    except ValueError as error:
        raise InvalidProgram(f"{method}: {error}") from error


def _inner_or_left(method: str, how: str) -> None:
    if how not in ("inner", "left"):
        raise InvalidProgram(f"{method}: wanted how='inner' or 'left', found {shown(how)}")


def _time_to_live(what: str, ttl_ms: int | None, domain: TimeDomain) -> TimeToLive:
    try:
        return TimeToLive(ttl_ms, domain)
    except ValueError as error:
        raise InvalidProgram(f"{what}: {error}") from error


def _names(method: str, names: Any) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else ()
    if not found or not all(isinstance(name, str) for name in found):
        raise InvalidProgram(f"{method}: wanted the name of a column, or a list of names, found {shown(names)}")
    return found


def _one_way(descending: bool | Sequence[bool], number: int) -> bool:
    """For records: they are compared as a whole."""
    ways = {descending} if isinstance(descending, bool) else set(descending)
    if len(ways) != 1:
        raise InvalidProgram(
            f"top_n: wanted one way for all {number} fields, found {descending!r}: records whose columns are not known "
            "are sorted up or down as a whole; sort by a function that turns a number round"
        )
    return bool(ways.pop())
