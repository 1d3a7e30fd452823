"""What streams have for joins: `lookup_join` of any stream, and the joins, `deduplicate` and `top_n` of a keyed one.

Parts of DataStream and KeyedStream, which add the operators to the program. Which operator it is, joins.py decides.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack

import pyarrow as pa

from ...actors.joins.joined_columns import How
from ...actors.joins.tagged_records import Pairs
from ...actors.operators.collector import Collector
from ...actors.operators.of_records import T
from ...actors.operators.operator import Operator
from ...actors.windows.assigners import WindowAssigner
from ...state.kinds.durations import Duration, as_if_seconds, duration_ms, may_be_seconds, take_units, whole_ms
from ..connectors import SqlLookupJoin
from .errors import InvalidProgram
from .event_time import ask_of_event_time, ask_of_time_to_live
from .joins import (
    Keyed,
    TimeDomain,
    columns_of_both,
    deduplicate,
    interval_join,
    lookup_join,
    regular_join,
    temporal_join,
    top_n,
    window_join,
)
from .known_options import Options, OptionsAndUnits, known_options
from .operator_checks import function_of
from .typed import R

S = TypeVar("S", covariant=True)
"""The stream of results."""


class TableLookups(Generic[S]):
    """A part of every stream."""

    @abstractmethod
    def _with_others(self, kind: str, operator: Operator, others: Sequence[Any], **options: Unpack[Options]) -> S:
        """The stream of an operator of this stream and the others, which may be none."""

    @known_options()
    def lookup_join(
        self,
        table: Any,
        on: str | Sequence[str] | None = None,
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: Literal["inner", "left"] = "left",
        suffix: str = "_right",
        **options: Unpack[Options],
    ) -> S:
        """Each row with the row of a table that has its key now; where there is none with nulls, or with how="inner"
        not at all. The columns of both are known.

        `table`: a pyarrow Table or RecordBatch, which does not change; a stream, which every subtask gets whole: of
        each key its newest row counts; or a SqlTable, whose rows are asked for and kept for a while. `on`: the key
        columns; if they are called differently, `left_on` and `right_on`.
        """
        made = lookup_join(table, (on, left_on, right_on), how, suffix)
        if isinstance(made, SqlLookupJoin) or isinstance(table, pa.Table | pa.RecordBatch):
            return self._with_others("lookup-join", made, [], **options)
        if not isinstance(table, TableLookups):
            raise InvalidProgram(
                "lookup_join: wanted a stream, a pyarrow.Table or RecordBatch, or a SqlTable, found a "
                f"{type(table).__name__}"
            )
        return self._with_others("lookup-join", made, [table.broadcast()], **options)  # type: ignore[attr-defined]


_KEY = "it is what both are keyed by: write left.key_by({left}).{method}(right.key_by({right}), ...)"
_SUFFIX = 'write suffix="_right", which columns of the other stream get whose names are taken'

_BOUNDS = "write interval_join(other, lower_ms, upper_ms)"
_OWN_BOUNDS = "its bounds come second and third, as in interval_join(other, -5_000, 5_000)"
_WINDOWS = "write window_join(other, tumbling(minutes=1))"
_SECOND = "windows come second, as in {}(other, tumbling(minutes=1){})"
_TIMES = {
    "join": dict.fromkeys(
        ("within", "within_ms", "windows"), "write window_join(...) or interval_join(...) in its place"
    ),
    "interval_join": dict.fromkeys(("within", "within_ms"), _OWN_BOUNDS) | {"windows": _WINDOWS},
    "window_join": dict.fromkeys(("within", "within_ms"), _BOUNDS) | {"windows": _SECOND.format("window_join", "")},
    "co_group": {"windows": _SECOND.format("co_group", ", function")},
}
"""By method, what Kafka Streams and others take for a join within a time."""


def _of_frames(method: str) -> dict[str, str]:
    """What joins of pandas, polars, Spark and Beam take, and how it is written here."""
    one = _KEY.format(left='"id"', right='"id"', method=method)
    each = _KEY.format(left='"id"', right='"other_id"', method=method)
    suffixes = dict.fromkeys(("suffixes", "rsuffix", "lsuffix"), _SUFFIX) | _TIMES.get(method, {})
    return dict.fromkeys(("on", "by", "key", "keys"), one) | dict.fromkeys(("left_on", "right_on"), each) | suffixes


class KeyedJoins(TableLookups[S], Generic[S, T]):
    """A part of KeyedStream."""

    @known_options(OptionsAndUnits, elsewhere=_of_frames("join"))
    def join(
        self,
        other: KeyedJoins[S],
        how: How = "inner",
        *,
        ttl_ms: Duration | None = None,
        ttl_time: TimeDomain = "processing",
        suffix: str = "_right",
        **options: Unpack[OptionsAndUnits],
    ) -> S:
        """Each record with each record of the other stream that has the same key, whenever they come. `how`: "inner",
        "left", "right" or "full"; all but "inner" give a changelog, with "+I" and "-D" in a column `kind`.

        Results are rows of the columns of both, where they are known; columns of the other whose names are taken get
        the suffix. Else they are pairs of records. Both streams are kept, each record for `ttl_ms`, or hours=1 and the
        like: from when it came by the clock; by event time, records match that are less than this apart.
        """
        ttl, others = _duration("join: ttl_ms", ttl_ms, options)
        made = regular_join(self._keyed, _keyed(other, "join"), how, suffix, ttl, ttl_time)
        ask_of_time_to_live(as_if_seconds("join", ttl_ms=ttl_ms), ttl_time, self._keyed.edges)
        return self._with_others("join", made, [other], **others)

    @known_options(elsewhere=_of_frames("interval_join"))
    def interval_join(
        self,
        other: KeyedJoins[S],
        lower_ms: Duration,
        upper_ms: Duration,
        *,
        how: How = "inner",
        lower_exclusive: bool = False,
        upper_exclusive: bool = False,
        suffix: str = "_right",
        **options: Unpack[Options],
    ) -> S:
        """Each record with those of the other stream that have the same key and an event time from `lower_ms` to
        `upper_ms` after its own; negative numbers are before it. What no other record can match any more is forgotten.

        In a "left", "right" or "full" join a record without a match is a result once it is certain that there is none.
        `late` and `late_right` of the results are the records that came too late. Bounds are ms, or timedeltas.
        """
        written = _as_if_seconds(lower_ms, upper_ms)
        lower_ms = whole_ms("interval_join: lower_ms", lower_ms, error=InvalidProgram)
        upper_ms = whole_ms("interval_join: upper_ms", upper_ms, error=InvalidProgram)
        sides = self._keyed, _keyed(other, "interval_join")
        made = interval_join(*sides, (lower_ms, upper_ms), (lower_exclusive, upper_exclusive), how, suffix)
        ask_of_event_time(written, self._keyed.edges)
        return self._with_others("interval-join", made, [other], **options)

    @known_options(elsewhere=_of_frames("temporal_join"))
    def temporal_join(
        self,
        versions: KeyedJoins[S],
        how: Literal["inner", "left"] = "inner",
        *,
        suffix: str = "_right",
        **options: Unpack[Options],
    ) -> S:
        """Each record with the version of its key that is valid at its event time: the newest record of the other
        stream that is not newer than it. It is emitted when the watermark has reached its time; `late` of the results
        are the records that came too late.
        """
        made = temporal_join(self._keyed, _keyed(versions, "temporal_join"), how, suffix)
        return self._with_others("temporal-join", made, [versions], **options)

    @known_options(OptionsAndUnits)
    def deduplicate(
        self,
        keep: Literal["first", "last"] = "first",
        *,
        within_ms: Duration | None = None,
        within_time: TimeDomain = "event",
        **options: Unpack[OptionsAndUnits],
    ) -> S:
        """Of the records of a key only the first. `within_ms`: a record is a duplicate of one that went on less than
        this, or hours=1 and the like, before or after it, by event time or by the clock; then keys are not kept
        forever.

        keep="last": the newest of each key by event time, as a changelog: "+I" when there is one, and when a newer one
        comes "-D" of the one before and "+I".
        """
        within, others = _duration("deduplicate: within_ms", within_ms, options)
        made = deduplicate(self._keyed, keep, within, within_time)
        ask_of_time_to_live(as_if_seconds("deduplicate", within_ms=within_ms), within_time, self._keyed.edges)
        return self._with_others("deduplicate", made, [], **others)

    @known_options()
    def top_n(
        self,
        n: int,
        by: str | Sequence[str] | Callable[[T], Any],
        *,
        descending: bool | Sequence[bool] = True,
        rank: str | None = "rank",
        **options: Unpack[Options],
    ) -> S:
        """The first `n` records of each key by these columns, or by what a function returns, as a changelog: "+I",
        "-U", "+U" and "-D" in a column `kind`, and the rank in a column of this name. Without a rank only records that
        come and go are changes. Of equal records the first that came is the better one.
        """
        return self._with_others("top-n", top_n(self._keyed, n, by, descending, rank), [], **options)

    @known_options(elsewhere=_of_frames("window_join"))
    def window_join(
        self,
        other: KeyedJoins[S],
        assigner: WindowAssigner,
        *,
        how: How = "inner",
        suffix: str = "_right",
        **options: Unpack[Options],
    ) -> S:
        """Each record with those of the other stream that have the same key and are in the same window, when the window
        fires: rows with `window_start` and `window_end`, or pairs of records.

        They are rows where the columns of both streams are known and windows are tumbling by event time, without a time
        zone. In a "left", "right" or "full" join a record without a match in its window is a result too.
        """
        keyed = _keyed(other, "window_join")
        made = window_join(self._keyed, keyed, assigner, how, suffix)
        if made is not None:
            return self._with_others("window-join", made, [other], **options)
        return self._co_grouped(other, assigner, Pairs(how), "window-join", **options)

    @known_options(elsewhere=_of_frames("co_group"))
    def co_group(
        self,
        other: KeyedJoins[S, R],
        assigner: WindowAssigner,
        function: Callable[[Any, Any, list[T], list[R], Collector], None],
        **options: Unpack[Options],
    ) -> S:
        """Give the records of both streams that have one key and are in one window, when it fires, to
        `function(key, window, left, right, out)`. `late` of the results are ("left" or "right", key, record).
        """
        columns_of_both("co_group", self._keyed, _keyed(other, "co_group"))
        return self._co_grouped(other, assigner, function_of(function, "co_group"), "co-group", **options)

    @abstractmethod
    def _co_grouped(
        self, other: Any, assigner: WindowAssigner, function: Callable[..., None], kind: str, **options: Unpack[Options]
    ) -> S:
        """Both streams as one of tagged records, in windows."""

    @property
    @abstractmethod
    def _keyed(self) -> Keyed: ...


def _duration(what: str, given: Any, options: Any) -> tuple[int | None, Options]:
    """The ms that are given, in parts or as a whole, if any are; and the options without the parts."""
    left: Any = dict(options)
    units = take_units(left)
    if given is None and not units:
        return None, left
    return duration_ms(what, given, units, error=InvalidProgram), left


def _as_if_seconds(lower: Any, upper: Any) -> str:
    """The call, if the wider bound may well be meant as seconds: -1 beside a wide one leaves out equal times."""
    bounds = [abs(each) for each in (lower, upper) if isinstance(each, int)]
    return f"interval_join({lower}, {upper})" if len(bounds) == 2 and may_be_seconds(max(bounds)) else ""


def _keyed(other: Any, method: str) -> Keyed:
    """Raises InvalidProgram for what is no keyed stream."""
    if not isinstance(other, KeyedJoins):
        raise InvalidProgram(
            f"{method}: wanted another keyed stream, found a {type(other).__name__}: call key_by(...) on both"
        )
    return other._keyed
