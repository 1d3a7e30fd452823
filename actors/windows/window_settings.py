"""WindowSettings: all that a window operator is made of but the records' function, checked to go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from inspect import isfunction
from typing import Any, Final, Literal, TypeAlias

from ...state.kinds.state_declaration import MergingStateDeclaration
from ..flow.elements import END_OF_TIME
from ..operators.collector import OutputTag
from .assigners import Global, WindowAssigner
from .errors import InvalidWindow
from .evictors import Evictor
from .time_triggers import ContinuousEventTimeTrigger, EventTimeTrigger, ProcessingTimeTrigger
from .triggers import NeverTrigger, PurgingTrigger, Trigger, can_merge, check_trigger, parts, purging
from .window import Window
from .window_contents import AggregateFunction
from .window_function import ProcessWindowFunction, states_of

LATE: Final = OutputTag("late")
"""The side output of late records."""

Mode: TypeAlias = Literal["accumulating", "discarding", "retracting"]
"""What a later firing of a window has: all its records; those since the last one; all, and what is taken back."""

MODES: Final = ("accumulating", "discarding", "retracting")


@dataclass(frozen=True)
class WindowSettings:
    """Raises InvalidWindow where parts of it do not go together."""

    assigner: WindowAssigner
    trigger: Trigger
    evictor: Evictor | None = None
    allowed_lateness_ms: int = 0
    mode: Mode = "accumulating"

    @classmethod
    def of(
        cls,
        assigner: Any,
        trigger: Any = None,
        evictor: Any = None,
        allowed_lateness_ms: int = 0,
        mode: Mode = "accumulating",
    ) -> WindowSettings:
        """With the assigner's own trigger and evictor where there are no others."""
        checked: WindowAssigner = _with_method("window", assigner, "assign", "an assigner such as tumbling(minutes=1)")
        if evictor is not None:
            _with_method("evictor", evictor, "before", "an evictor such as keep_last(10)")
        fires = checked.default_trigger() if trigger is None else check_trigger("trigger", trigger)
        return cls(
            checked,
            purging(fires) if mode == "discarding" else fires,
            checked.default_evictor() if evictor is None else evictor,
            allowed_lateness_ms,
            mode,
        )

    def __post_init__(self) -> None:
        if self.allowed_lateness_ms < 0:
            raise InvalidWindow(f"allowed_lateness: wanted at least 0 ms, found {self.allowed_lateness_ms}")
        if self.allowed_lateness_ms and self.assigner.time != "event":
            raise InvalidWindow("allowed_lateness: no record is late for a window that does not go by event time")
        if self.mode not in MODES:
            raise InvalidWindow(f"wanted one of {', '.join(MODES)}, found {self.mode!r:.80}")
        if self.mode == "retracting" and self.trigger.purges():
            raise InvalidWindow(
                "retracting() takes back what a window has emitted and emits all that it holds now; a purging trigger, "
                "as that of count_window(n), leaves it nothing: give another trigger, or use discarding()"
            )
        self._check_time()
        if self.assigner.merges and not can_merge(self.trigger):
            raise InvalidWindow(
                f"the trigger {self.trigger!r:.80} cannot be used with sessions: define on_merge(window, context), "
                "which says what becomes of what it kept for windows that are merged"
            )

    def _check_time(self) -> None:
        """Whether the trigger goes by a time at which these windows end."""
        goes_by_event_time = any(isinstance(each, EventTimeTrigger) for each in parts(self.trigger))
        if self.assigner.time == "processing" and goes_by_event_time:
            raise InvalidWindow(
                f"the trigger {self.trigger!r:.80} goes by event time, and the windows by the clock: leave it out, use "
                'processing_time() or continuous_processing_time(...), or windows without time="processing"'
            )
        alone = self.trigger
        while isinstance(alone, PurgingTrigger):
            alone = alone.trigger
        if self.assigner.time == "event" and type(alone) is ProcessingTimeTrigger:
            raise InvalidWindow(
                "the trigger processing_time() waits until the clock has reached the window's end, and windows of "
                "event time are forgotten when the watermark has, with what they hold: use event_time(), windows with "
                'time="processing", or any_of(event_time(), processing_time())'
            )

    def check_function(self, function: ProcessWindowFunction, aggregate: AggregateFunction | None) -> None:
        """Whether it can be used where windows merge."""
        declared = states_of(function)
        if not self.assigner.merges:
            return
        if aggregate is not None and type(aggregate).merge is AggregateFunction.merge:
            raise InvalidWindow(f"{type(aggregate).__name__}: sessions merge: define merge(one, other) as well")
        for name, each in declared.items():
            if name not in function.states_of_key and not isinstance(each, MergingStateDeclaration):
                raise InvalidWindow(
                    f"{type(function).__name__}.{name}: the {each.kind} of a window cannot be merged as sessions are: "
                    "use a ListState, ReducingState or FoldingState, or put its name into states_of_key"
                )

    def cleanup_ms(self, window: Window) -> int:
        """When the window is forgotten, by the time that the assigner goes by; the end of time: never."""
        cleanup_ms = window.max_timestamp + self.allowed_lateness_ms
        return cleanup_ms if cleanup_ms < END_OF_TIME else END_OF_TIME

    @property
    def never_fires(self) -> bool:
        """Whether it is one window of everything, whose trigger, as its own one, never fires."""
        trigger = self.trigger
        while isinstance(trigger, PurgingTrigger):
            trigger = trigger.trigger
        return type(self.assigner) is Global and isinstance(trigger, NeverTrigger)

    @property
    def rules(self) -> dict[str, str]:
        """What says which records a window holds and when it fires, as text that is equal for equal rules. How late
        records may come is not among them: windows go on with another allowed lateness.
        """
        trigger = self.trigger.trigger if self.mode == "discarding" else self.trigger  # type: ignore[attr-defined]
        return {
            "windows": rule_of(self.assigner),
            "trigger": rule_of(trigger),
            "evictor": rule_of(self.evictor),
            "firings": self.mode,
        }

    @property
    def trigger_cleans_up(self) -> bool:
        """Whether the trigger itself sets, with every record, the timer at which the window is forgotten."""
        trigger = self.trigger
        while isinstance(trigger, PurgingTrigger):
            trigger = trigger.trigger
        sets_the_end = type(trigger) in (EventTimeTrigger, ContinuousEventTimeTrigger)
        return sets_the_end and self.assigner.time == "event" and not self.allowed_lateness_ms


def rule_of(value: Any) -> str:
    """Settings as text: values by what they are, code by its name alone. Fields that are as if unsaid are left out."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(rule_of, value))}]"
    if is_dataclass(value) and not isinstance(value, type):
        said = [(each.name, getattr(value, each.name)) for each in fields(value) if _is_said(each, value)]
        return f"{type(value).__name__}({', '.join(f'{name}={rule_of(found)}' for name, found in said)})"
    return "a function" if isfunction(value) else type(value).__name__


def _is_said(field: Field[Any], value: Any) -> bool:
    return field.default is MISSING or getattr(value, field.name) != field.default


def _with_method(what: str, given: Any, method: str, wanted: str) -> Any:
    found: Callable[..., Any] | None = getattr(given, method, None)
    if isinstance(given, type) or not callable(found):
        raise InvalidWindow(f"{what}: wanted {wanted}, found {given!r:.80}")
    return given
