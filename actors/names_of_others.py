"""Names by which Flink, Kafka Streams, Beam, Faust and Bytewax call what operators use, and what it is called here.

For the text of an AttributeError only: `remedies` asks. States have a table of their own, on their floor
(`state/kinds/misnamed`), and so have hooks that nothing calls (`runtime/api/other_hooks`).
"""

from __future__ import annotations

from collections.abc import Mapping

_EMIT = "write out.collect(record), or out.emit([...]) for several"
_EMIT_OUT = "what a method emits goes to its last parameter: out.collect(record)"
_EMIT_TO = "write out.collect(record), or out.collect_to(tag, record) for a side output"
_TIMER = "a timer is set by self.timers.at_event_time(ms) or self.timers.at_processing_time(ms)"
_DELETE = "a timer is taken back by self.timers.delete_event_time(ms) or self.timers.delete_processing_time(ms)"
_STATE = "a state is declared in the operator's class, as in total = ValueState(int, default=0)"
_KEY = "the key of a record is self.key, in a KeyedOperator"
_TIME = "the event time of a record is self.timestamp, in a KeyedOperator, in milliseconds"
_WATERMARK = "event time has come to self.watermark, in milliseconds"
_CLOCK = (
    "self.context.clock.wall_ms() is the time of day, and self.context.clock.now_ms() measures; both in milliseconds"
)
_CONTEXT = "where an operator runs is said by self.context, from open on"
_METRICS = "figures are made by self.context.metrics, as in self.context.metrics.counter('seen')"
_LOG = "log with Python's logging.getLogger(__name__)"


def _each(text: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, text)


_SETTING = (
    "register_timer",
    "register_event_time_timer",
    "register_processing_time_timer",
    "registerEventTimeTimer",
    "registerProcessingTimeTimer",
    "timer_service",
    "timerService",
    "set_timer",
    "notify_at",
    "punctuate",
)
_DELETING = (
    "delete_timer",
    "delete_event_time_timer",
    "delete_processing_time_timer",
    "deleteEventTimeTimer",
    "deleteProcessingTimeTimer",
)
_OF_TIMERS = _each(_TIMER, *_SETTING) | _each(_DELETE, *_DELETING)
_OF_PLACES = (
    _each(_KEY, "current_key", "get_current_key", "getCurrentKey")
    | _each(_WATERMARK, "current_watermark", "currentWatermark", "event_time", "current_event_time")
    | _each(
        _CLOCK,
        "current_processing_time",
        "currentProcessingTime",
        "processing_time",
        "current_system_time_ms",
        "current_time_millis",
        "currentTimeMillis",
    )
    | _each(_METRICS, "metric_group", "get_metric_group", "getMetricGroup", "get_metrics_group")
)
"""Of the operator, or of what is like Flink's context."""

_OWNERS: Mapping[str, Mapping[str, str]] = {
    "Collector": _each(_EMIT_TO, "output", "side_output")
    | _each(_EMIT, "send", "put", "write", "add", "next", "on_next", "push", "forward", "yield_", "emit_record"),
    "Clock": _each(
        _CLOCK,
        *("now", "now_s", "now_ns", "time", "time_ms", "time_ns", "wall", "wall_s", "ms", "millis", "monotonic"),
        *("current_time", "current_time_ms", "utcnow", "today", "datetime", "timestamp"),
    ),
    "Timers": _each(
        _TIMER, "set", "add", "at", "after", "schedule", "register", "event_time", "processing_time", "call_later"
    )
    | _each(_DELETE, "clear", "cancel", "remove", "unregister"),
    "OperatorContext": {
        **_each(_TIME, "timestamp", "get_timestamp", "element_timestamp"),
        **_each(_WATERMARK, "watermark"),
        **_each(_EMIT_TO, "output", "side_output"),
        **_each(_EMIT_OUT, "forward", "emit", "collect"),
        **_each("it is self.context.subtask_index", "get_index_of_this_subtask", "getIndexOfThisSubtask", "task_id"),
        **_each("it is self.context.parallelism", "get_number_of_parallel_subtasks", "getNumberOfParallelSubtasks"),
        **_each("it is self.context.name", "get_task_name", "getTaskName", "task_name", "step_id"),
        **_each("it is self.context.attempt_number", "get_attempt_number", "getAttemptNumber"),
        **_each(_KEY, "key"),
        **_each(_CLOCK, "now", "time", "now_ms", "wall_ms"),
        **_each(_LOG, "logger", "log"),
    },
    "TriggerContext": {
        **_each("a trigger's timer is set by context.at_event_time(ms) or context.at_processing_time(ms)", *_SETTING),
        **_each("it is context.delete_event_time(ms) or context.delete_processing_time(ms)", *_DELETING),
        **_each("event time has come to context.watermark", "get_current_watermark", "getCurrentWatermark"),
        **_each("it is context.processing_time()", "get_current_processing_time", "getCurrentProcessingTime"),
        **_each(
            "what a trigger keeps goes in by context.put(name, value), and comes out by context.get(name, default)",
            *("get_partitioned_state", "getPartitionedState", "get_state", "state"),
        ),
    },
    "Operator": {
        **_each(_CONTEXT, "ctx", "runtime_context", "get_runtime_context", "getRuntimeContext"),
        **_each(_EMIT_OUT, "out", "collect", "emit", "send", "output", "collector", "forward"),
        **_each("it is self.timers, in a KeyedOperator", "timer"),
        **_each(_TIME, "get_timestamp", "current_timestamp"),
        **_each(_CLOCK, "clock", "now", "now_ms", "wall_ms"),
        **_each("it is self.context.subtask_index", "subtask_index", "subtask", "task_id"),
        **_each("it is self.context.parallelism", "parallelism"),
        **_each(_METRICS, "metrics"),
        **_each(_STATE, "state", "get_state", "get_list_state", "get_map_state", "get_reducing_state"),
        **_each(_LOG, "logger", "log"),
    },
}
"""By a class, or the end of its name: of the first base that it has."""


def meant_here(owner: object, name: str) -> str:
    """What to write in place of this attribute; "" where nothing is known. An owner of any kind that has a name of
    Flink's for timers, keys or time is taken for its context.
    """
    for base in type(owner).__mro__:
        for kind, names in _OWNERS.items():
            if base.__name__.endswith(kind) and (text := names.get(name)):
                return text
    if text := _OF_TIMERS.get(name) or _OF_PLACES.get(name):
        return text
    return _STATE if type(owner).__name__ == "OperatorContext" and "state" in name else ""
