"""`self.timers` of a compiled method: `at_event_time`, `delete_event_time` and `delete` write into a log, which the
operator's SlotTimers take over when the kernel has run.

Most records register the time that was registered last for the key: one comparison finds that out.
"""

from __future__ import annotations

from typing import Any, NoReturn

from numba.core import types
from numba.core.typing.templates import AttributeTemplate, bound_function, signature
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic

from ...state.columnar.slot_timers import NO_TIME
from .growing import added_row
from .layout import (
    DELETED,
    DELETED_DUE,
    LAST,
    LOG_COLUMNS,
    LOG_KINDS,
    REGISTERED,
    SLICE,
    SLOTS,
    TIMER_LOG,
    TIMES,
    TOUCHED,
    Layout,
)
from .machine_code import INT8, INT64, load_cell, load_item, store_number, view
from .refusal import refuse, shown_type
from .types import TimerDeleted, TimersType, TimerType

_DELETED = TimerDeleted()
_ONLY = "a compiled function has event-time timers without a namespace: leave `compiled` out for others"


@infer_getattr
class _TimersMethods(AttributeTemplate):
    key = TimersType

    @bound_function("understudy.at_event_time")
    def resolve_at_event_time(self, timers: Any, args: Any, kws: Any) -> Any:
        _check_time(timers.layout, "at_event_time", args, kws)
        return signature(timers.timer, types.int64)

    @bound_function("understudy.delete_event_time")
    def resolve_delete_event_time(self, timers: Any, args: Any, kws: Any) -> Any:
        _check_time(timers.layout, "delete_event_time", args, kws)
        return signature(_DELETED, types.int64)

    @bound_function("understudy.delete_timer")
    def resolve_delete(self, timers: Any, args: Any, kws: Any) -> Any:
        if len(args) != 1 or kws or args[0] != timers.timer:
            found = ", ".join(map(shown_type, args))
            refuse(
                timers.layout,
                f"self.timers.delete takes a timer, found {found or 'nothing'}: for a time in ms use delete_event_time",
            )
        return signature(_DELETED, args[0])

    def generic_resolve(self, timers: Any, name: str) -> NoReturn:
        refuse(timers.layout, f"self.timers.{name}: {_ONLY}")


def _check_time(layout: Layout, method: str, args: Any, kws: Any) -> None:
    if len(args) > 1 or "namespace" in kws:
        refuse(layout, f"self.timers.{method} with a namespace: {_ONLY}")
    if len(args) != 1 or kws:
        refuse(layout, f"self.timers.{method} takes one time, by position")
    given = types.unliteral(args[0])
    if not isinstance(given, types.Integer):
        hint = ": use int(...) of it" if isinstance(given, types.Float) else ""
        refuse(layout, f"self.timers.{method} takes a whole number of ms, found {shown_type(given)}{hint}")


@infer_getattr
class _TimerAttribute(AttributeTemplate):
    key = TimerType

    def generic_resolve(self, timer: Any, name: str) -> Any:
        if name == "time_ms":
            return types.int64
        refuse(timer.layout, f"timer.{name}: a compiled function has only timer.time_ms; {_ONLY}")


@lower_getattr_generic(TimerType)
def _time_of(context: Any, builder: Any, timer: Any, value: Any, name: str) -> Any:
    return value


@lower_builtin("understudy.at_event_time", TimersType, types.int64)
def _register(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """A timer that is pending already is not logged. NO_TIME itself is a time, too, and always logged."""
    time = args[1]
    slot, last = _last(context, builder, sig, args)
    is_new = builder.or_(
        builder.icmp_signed("!=", load_item(builder, last, "i8", slot), time),
        builder.icmp_signed("==", time, INT64(NO_TIME)),
    )
    with builder.if_then(is_new):
        store_number(builder, last, "i8", slot, time)
        _log(context, builder, sig, args, slot, time, INT8(REGISTERED))
    return time


@lower_builtin("understudy.delete_timer", TimersType, TimerType)
@lower_builtin("understudy.delete_event_time", TimersType, types.int64)
def _delete(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    time = args[1]
    slot, last = _last(context, builder, sig, args)
    with builder.if_then(builder.icmp_signed("==", load_item(builder, last, "i8", slot), time)):
        store_number(builder, last, "i8", slot, INT64(NO_TIME))
    _log(context, builder, sig, args, slot, time, _deleted(context, builder, sig, args, time))
    return context.get_dummy_value()


def _deleted(context: Any, builder: Any, sig: Any, args: Any, time: Any) -> Any:
    """What the log says of it: a timer whose time is not after that of the record is due."""
    timers = sig.args[0]
    if timers.layout.method != "process" or not timers.layout.is_timed:
        return INT8(DELETED)
    seen = view(context, builder, timers, args[0])
    now = load_item(builder, load_cell(builder, seen.work, TIMES), "i8", seen.row)
    return builder.select(builder.icmp_signed("<=", time, now), INT8(DELETED_DUE), INT8(DELETED))


def _last(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, Any]:
    """The slot at work, and the address of what was registered last for each."""
    timers = sig.args[0]
    timers.layout.uses_timers = True
    seen = view(context, builder, timers, args[0])
    slot = load_item(builder, load_cell(builder, seen.work, SLOTS), "i8", seen.row)
    return slot, load_cell(builder, seen.work, LAST)


def _log(context: Any, builder: Any, sig: Any, args: Any, slot: Any, time: Any, change: Any) -> None:
    timers = sig.args[0]
    work = view(context, builder, timers, args[0]).work
    added_row(context, builder, work, TIMER_LOG, LOG_COLUMNS, LOG_KINDS, (time, slot, change))
    if timers.layout.method == "on_timer":
        touched, number = load_cell(builder, work, TOUCHED), load_cell(builder, work, SLICE)
        store_number(builder, touched, "i8", slot, number)
