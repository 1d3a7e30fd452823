"""Windows over streams. At home: assigners, triggers, evictors, sessions that merge, and the operators that run them.
Not here: event time itself and timers (operators), joins.
"""

from .assigners import WindowAssigner
from .changes import Change
from .combined_triggers import all_of, any_of
from .errors import InvalidWindow
from .evictors import Evictor, TimedRecord, keep_last, keep_newest
from .time_triggers import continuous_event_time, continuous_processing_time, event_time, processing_time
from .triggers import Trigger, TriggerContext, TriggerResult, count, never, purging
from .window import GlobalWindow, TimeWindow, Window
from .window_contents import AggregateFunction
from .window_function import ProcessWindowFunction
from .window_makers import count_window, cumulative, global_window, session, sliding, tumbling

__all__ = [
    "AggregateFunction",
    "Change",
    "Evictor",
    "GlobalWindow",
    "InvalidWindow",
    "ProcessWindowFunction",
    "TimeWindow",
    "TimedRecord",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "all_of",
    "any_of",
    "continuous_event_time",
    "continuous_processing_time",
    "count",
    "count_window",
    "cumulative",
    "event_time",
    "global_window",
    "keep_last",
    "keep_newest",
    "never",
    "processing_time",
    "purging",
    "session",
    "sliding",
    "tumbling",
]
