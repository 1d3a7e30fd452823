"""Windows over a stream, until it is said what becomes of their records. Flink: WindowedStream.

WindowedStream, beside DataStream in `stream.py`, adds only what type checkers know of the records.

Each method but the last returns a stream of windows with one thing more decided; `reduce`, `aggregate` and `process`
add the operator and return the stream of its results, whose time is the window's last moment, end - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

import pyarrow as pa

from ...actors.windows.assigners import WindowAssigner
from ...actors.windows.columnar_shape import columnar_shape
from ...actors.windows.columnar_windows import ColumnarWindows
from ...actors.windows.errors import InvalidWindow
from ...actors.windows.evictors import Evictor
from ...actors.windows.record_aggregation import AggregatedRows, RecordAggregation
from ...actors.windows.time_triggers import ContinuousEventTimeTrigger
from ...actors.windows.triggers import Trigger, parts
from ...actors.windows.window_contents import Aggregated, AggregateFunction, AllRecords, Contents, Reduced
from ...actors.windows.window_function import PlainWindowFunction, ProcessWindowFunction
from ...actors.windows.window_operator import WindowOperator
from ...actors.windows.window_settings import Mode, WindowSettings
from ...messages.known_names import known_arguments
from ...messages.own_annotations import signature_of
from ...state.kinds.aggregates import Aggregate, misgiven
from ...state.kinds.durations import Duration, Units, as_if_seconds, duration_ms
from .advice import UNTYPED
from .elsewhere import OF_WINDOWS, instead_of, without_guess
from .errors import InvalidOperator, InvalidProgram
from .event_time import ask_of_event_time
from .forgotten_lists import check_forgotten_lists
from .hook_checks import check_window_function
from .known_options import Options, check_results, known_options
from .named_aggregates import by_itself
from .names_set_by_us import check_names_set_by_us
from .operator_checks import class_meant, function_of, instance_of
from .samples import check_columns
from .stream_graph import StreamEdge
from .streams_shown import names_of
from .window_parts import check_window_part

S = TypeVar("S", covariant=True)
"""The stream of results."""

Final = ProcessWindowFunction | type[ProcessWindowFunction] | Callable[..., None] | None

_OF_FLINK = {
    "window_function": "it is the second argument, as in aggregate(function, final)",
    "accumulator_type": UNTYPED,
    "output_type": UNTYPED,
}
"""Beside an AggregateFunction."""

_AT_ITS_END = "a window gives its result when it ends: docs/coming-from.md"
_OUTPUT_MODE = dict.fromkeys(("output_mode", "outputMode"), _AT_ITS_END)
"""Of Spark."""

_FIRST = "say what becomes of its records first, with aggregate, reduce or process"


@dataclass(frozen=True, slots=True, repr=False)
class Windows(Generic[S]):
    """All of a WindowedStream but the types. Made by `keyed.window(assigner)` and `stream.window_all(assigner)`."""

    _then: Callable[..., S]
    """Adds an operator of this kind to the stream."""
    _keys: tuple[Any, ...]
    _schema: pa.Schema | None
    _assigner: WindowAssigner
    _edges: Sequence[StreamEdge]
    """What comes into the windows."""
    _trigger: Trigger | None = None
    _evictor: Evictor | None = None
    _allowed_lateness_ms: int = 0
    _mode: Mode | None = None
    """None: nothing was said."""

    def __post_init__(self) -> None:
        self._settings()  # raises InvalidWindow where the user wrote it
        for part in (self._assigner, self._trigger, self._evictor):
            check_window_part(part)

    def __repr__(self) -> str:
        origin = f" of {names_of(self._edges)}" if self._edges else ""
        return f"<{type(self).__name__}{origin} in windows {self._assigner!r}: {_FIRST}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = instead_of(name, OF_WINDOWS, dir(type(self))) or f": {_FIRST}"
            raise without_guess(f"a window has no {name!r}{'' if name.startswith('_') else hint}", name)

    @known_arguments(first=1)
    def trigger(self, trigger: Trigger) -> Self:
        """Fire when this says so, in place of the end of the window: any_of(event_time(), count(100)) does both."""
        if self._trigger is not None:
            raise InvalidWindow(
                f"trigger: {self._trigger!r:.80} is set, and {trigger!r:.80} would take its place: give one, or both "
                "as any_of(...) or all_of(...)"
            )
        made = replace(self, _trigger=trigger)
        for part in parts(trigger):
            if isinstance(part, ContinuousEventTimeTrigger):
                ask_of_event_time(part.as_if_seconds, self._edges)
        return made

    @known_arguments(first=1)
    def evictor(self, evictor: Evictor) -> Self:
        """Keep some of the records only; then all are held, and combined when the window fires."""
        if self._evictor is not None:
            raise InvalidWindow(
                f"evictor: {self._evictor!r:.80} is set, and {evictor!r:.80} would take its place: give one"
            )
        return replace(self, _evictor=evictor)

    @known_arguments(first=1)
    def allowed_lateness(self, lateness: Duration | None = None, **units: Unpack[Units]) -> Self:
        """Keep windows this long after their end, by event time: records that come until then count, and fire again."""
        late_ms = duration_ms("allowed_lateness", lateness, units, error=InvalidWindow, least=0)
        ask_of_event_time(as_if_seconds("allowed_lateness", lateness), self._edges)
        return replace(self, _allowed_lateness_ms=late_ms)

    @known_arguments(first=1)
    def accumulating(self) -> Self:
        """A later firing of a window has all its records again. That is so if nothing else is said."""
        return self._firing("accumulating")

    @known_arguments(first=1)
    def discarding(self) -> Self:
        """A later firing of a window has the records since the one before."""
        return self._firing("discarding")

    @known_arguments(first=1)
    def retracting(self) -> Self:
        """As accumulating, and results are `Change`s: ("+I", result) at first, then ("-U", the result before) and
        ("+U", the new one). A firing with the same result emits nothing.
        """
        return self._firing("retracting")

    @known_options(elsewhere=_OUTPUT_MODE)
    def reduce(self, function: Any, final: Any = None, **options: Unpack[Options]) -> S:
        """Combine records two by two as they come. Emits the result, or what `final` makes of it, as in `process`."""
        return self._operator("window-reduce", Reduced(function_of(function, "reduce")), final, options)

    @known_arguments(first=1)
    def aggregate(
        self,
        function: AggregateFunction | type[AggregateFunction] | None = None,
        final: Final = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        **specs: Any,
    ) -> S:
        """Named aggregates, as in `aggregate(bids=Count(), best=Max("price"))`: a row per key and firing, of the key
        columns, `window_start`, `window_end` and the aggregates. Windows that go by no time have no such two columns.

        Of a stream of columns it takes and makes whole Arrow batches, where the windows go by event time and have the
        trigger, the evictor and the firings that they have if nothing is said.

        Or an AggregateFunction of your own: emits its result, or what `final` makes of it, as in `process`.
        """
        options = {"name": name, "parallelism": parallelism, "slot_sharing_group": slot_sharing_group}
        given = {option: value for option, value in options.items() if value is not None}
        if function is not None and (option := next(filter(_OF_FLINK.get, specs), None)) is not None:
            raise TypeError(f"aggregate has no argument {option!r}: {_OF_FLINK[option]}")
        if specs:
            self._check_no_column(function)
        if isinstance(function, str | Aggregate) or (isinstance(function, type) and issubclass(function, Aggregate)):
            raise InvalidProgram(f"aggregate: {misgiven(function)}")
        if (function is None) == (not specs):
            found = "both" if specs else "neither"
            raise InvalidProgram(
                f"aggregate: wanted named aggregates, as in bids=Count(), or one AggregateFunction, found {found}"
            )
        if function is not None:
            return self._operator("window-aggregate", Aggregated(_aggregate_of(function)), final, given)
        if final is not None:
            raise InvalidProgram(
                "aggregate: found named aggregates and `final`, which goes with one AggregateFunction: write map(...) "
                "behind it, in place of `final`, for what becomes of each row"
            )
        check_results("aggregate", specs, ("final", *Options.__annotations__), Aggregate)
        columnar = self._columnar(specs)
        if columnar is not None:
            return self._then("window-aggregate", columnar, **given)
        check_columns(specs, self._edges)
        rows = AggregatedRows(self._key_columns(), specs, has_times=self._assigner.time is not None)
        return self._operator("window-aggregate", Aggregated(RecordAggregation(specs)), rows, given)

    def _check_no_column(self, found: object) -> None:
        """Before named aggregates. Raises InvalidProgram."""
        if isinstance(found, str):
            has_times = () if self._assigner.time is None else ("window_start", "window_end")
            raise InvalidProgram(
                f"aggregate: wanted named aggregates alone, found {found!r:.80} before them. "
                f"{by_itself(found, self._keys, *has_times)}"
            )

    @known_options(elsewhere=_OUTPUT_MODE)
    def process(self, function: Any, **options: Unpack[Options]) -> S:
        """Hold all records of a window and give them to `function(key, window, records, out)`, or to a
        ProcessWindowFunction.
        """
        if function is None:
            raise InvalidProgram("process: wanted a function of (key, window, records, out), found None")
        return self._operator("window-process", AllRecords(), function, options)

    def _operator(self, kind: str, contents: Contents, function: Final, options: Mapping[str, Any]) -> S:
        made = None if function is None else _function_of(function)
        keys = None if any(map(callable, self._keys)) else self._key_columns()
        return self._then(kind, WindowOperator(self._settings(), contents, made, keys), **options)

    def _columnar(self, specs: dict[str, Any]) -> ColumnarWindows | None:
        """The operator for whole batches; None if there is none for such windows, keys or records."""
        if self._schema is None or not self._keys or any(map(callable, self._keys)):
            return None
        if self._trigger is not None or self._evictor is not None or self._mode not in (None, "accumulating"):
            return None
        shape = columnar_shape(self._assigner)
        if shape is None:
            return None
        return ColumnarWindows(shape, self._key_columns(), specs, self._allowed_lateness_ms)

    def _firing(self, mode: Mode) -> Self:
        if self._mode not in (None, mode):
            raise InvalidWindow(f"{mode}(): later firings are {self._mode} already: say one of the two")
        return replace(self, _mode=mode)

    def _settings(self) -> WindowSettings:
        mode = self._mode or "accumulating"
        return WindowSettings.of(self._assigner, self._trigger, self._evictor, self._allowed_lateness_ms, mode)

    def _key_columns(self) -> list[str]:
        """How the parts of the key are called in a row of results."""
        return [_column_of(key, self._schema) for key in self._keys]


def _column_of(key: Any, schema: pa.Schema | None) -> str:
    if isinstance(key, str):
        return key
    if not isinstance(key, int):
        return "key"
    return f"_{key + 1}" if schema is None else str(schema.names[key])


def _function_of(given: Any) -> ProcessWindowFunction:
    """Raises InvalidOperator for what is no function of a window."""
    given = class_meant(given)
    if isinstance(given, type) and issubclass(given, ProcessWindowFunction):
        given = instance_of(given)
    if isinstance(given, ProcessWindowFunction):
        if type(given).process is ProcessWindowFunction.process:
            raise InvalidOperator(f"{type(given).__name__} does not define process(self, window, records, out)")
        check_window_function(given)
        check_forgotten_lists(type(given))
        check_names_set_by_us(type(given))
        return given
    function = function_of(given, "process")
    if (number := _parameters(function)) not in (4, None):
        raise InvalidOperator(
            f"process: wanted a function of four: (key, window, records, out), found one of {number}: "
            f"{getattr(function, '__qualname__', function)!s:.80}"
        )
    return PlainWindowFunction(function)


def _aggregate_of(given: Any) -> AggregateFunction:
    given = class_meant(given)
    made = instance_of(given) if isinstance(given, type) else given
    if not isinstance(made, AggregateFunction):
        raise InvalidOperator(
            f"aggregate: wanted a subclass or an instance of AggregateFunction, found {made!r:.80}; named "
            "aggregates are keywords, as in bids=Count()"
        )
    check_window_part(made)
    return made


def _parameters(function: Callable[..., Any]) -> int | None:
    """How many arguments a function wants by position; None if that cannot be known, or is open."""
    try:
        parameters: Sequence[Parameter] = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    by_position = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return (
        len([each for each in by_position if each.default is each.empty]) if len(by_position) > 4 else len(by_position)
    )
