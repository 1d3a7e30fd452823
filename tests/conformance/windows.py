"""windows.json: a WindowOperator in a harness, its assigners, and how windows of sessions merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK
from understudy.actors.windows.columnar_shape import columnar_shape
from understudy.actors.windows.columnar_windows import ColumnarWindows
from understudy.actors.windows.errors import InvalidWindow
from understudy.actors.windows.evictors import keep_last, keep_newest
from understudy.actors.windows.time_triggers import (
    continuous_event_time,
    continuous_processing_time,
    event_time,
    processing_time,
)
from understudy.actors.windows.triggers import Trigger, count, purging
from understudy.actors.windows.window import TimeWindow, Window, merged, window_start
from understudy.actors.windows.window_contents import AllRecords, Contents, Reduced
from understudy.actors.windows.window_makers import cumulative, global_window, session, sliding, tumbling
from understudy.state.kinds.aggregates import Sum

from ..actors.windows.window_stage import ColumnStage, WindowStage, windowed
from .scenario import Difference, Scenario, UnknownWord, Words, compare, said, scenarios_of

KEYS = frozenset(
    {"window_start", "session_merge", "size_or_gap", "slide", "gap", "lateness", "evictor"}
    | {"element", "watermark", "processing_time", "snapshot_and_restore", "fires", "late"}
)
"""Words that only this schema has."""


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "assignment", _assignment)
    yield from scenarios_of(document, "window_start", _window_start)
    yield from scenarios_of(document, "session_merge", _session_merge)
    yield from scenarios_of(document, "invalid", _invalid)
    yield from scenarios_of(document, "scenarios", _play)


def assigner_of(words: Words) -> Any:
    """That of a configuration, or of a case of a table."""
    words = said(words)
    kind = words["kind"].removeprefix("proc_")
    time: Any = "processing" if words["kind"].startswith("proc_") else "event"
    size, offset = words.get("size", words.get("size_or_gap")), words.get("offset", 0)
    match kind:
        case "tumbling":
            return tumbling(size, offset_ms=offset, time=time)
        case "sliding":
            return sliding(size, words["slide"], offset_ms=offset, time=time)
        case "cumulative":
            return cumulative(words["step"], size, offset_ms=offset, time=time)
        case "session":
            return session(words.get("gap", size), time=time)
        case "global":
            return global_window()
    raise UnknownWord(f"found windows of kind {words['kind']!r}")


def in_our_words(words: Words) -> Words:
    """An offset below 0, which later releases of Flink take, is told as the one of the same windows that we take."""
    offset, every = words.get("offset") or 0, words.get("slide") or words.get("size", words.get("size_or_gap"))
    return words | {"offset": offset % every} if -(every or 0) < offset < 0 else words


def trigger_of(words: list[Any]) -> Trigger:
    match words:
        case [*inner, "purge"]:
            return purging(trigger_of(inner))
        case ["event"]:
            return event_time()
        case ["processing"]:
            return processing_time()
        case ["count", n]:
            return count(n)
        case ["continuous_event", interval]:
            return continuous_event_time(interval)
        case ["continuous_processing", interval]:
            return continuous_processing_time(interval)
    raise UnknownWord(f"found the trigger {words}")


def evictor_of(words: list[Any] | None) -> Any:
    match words:
        case None:
            return None
        case ["count", n, *when]:
            return keep_last(n, *filter(None, when))
        case ["time", within, *when]:
            return keep_newest(within, *filter(None, when))
    raise UnknownWord(f"found the evictor {words}")


def _assignment(case: Words) -> Iterator[Difference]:
    found = assigner_of(in_our_words(case)).assign(None, case["timestamp"])
    yield from compare("windows", _sorted(case["windows"]), _sorted([list(each) or "global" for each in found]))


def _window_start(case: Words) -> Iterator[Difference]:
    yield from compare("start", case["start"], window_start(case["timestamp"], case["offset"], case["size"]))


def _given(words: Words, name: str) -> list[Any]:
    return [] if words.get(name) is None else [words[name]]


def _session_merge(case: Words) -> Iterator[Difference]:
    found = [list(whole) for whole, _ in merged(TimeWindow(*each) for each in case["windows"])]
    yield from compare("merged", case["merged"], found)


def _invalid(case: Words) -> Iterator[Difference]:
    try:
        found = repr(
            [assigner_of(case), *map(trigger_of, _given(case, "trigger")), *map(evictor_of, _given(case, "evictor"))]
        )
    except InvalidWindow:
        found = "refused"
    yield from compare("a mistake", "refused", found)


HELD: dict[str, Callable[[], Contents]] = {
    "all records": AllRecords,
    "a sum": lambda: Reduced(lambda one, other: (one[0], one[1] + other[1], None)),
}
"""The ways to hold records, each of which must do."""


def _play(words: Words) -> Iterator[Difference]:
    """With each way to hold records; and once with a restore after every step, which must not change anything. A
    continuous trigger can have a timer in the past, which waits for the next watermark: a restore is one.
    """
    ways = (False,) if "continuous_event" in said(words["config"]).get("trigger", []) else (False, True)
    for name, contents in HELD.items():
        for restores in ways:
            for each in _Script(words, contents(), restores).play():
                yield Difference(f"{name}{', restored' * restores}: {each.where}", each.expected, each.found)
    if _has_columns(words):
        for restores in (False, True):
            for each in _ColumnScript(words, restores).play():
                yield Difference(f"columns{', restored' * restores}: {each.where}", each.expected, each.found)


def _has_columns(words: Words) -> bool:
    """Whether the columnar operator has such windows; it fires as the event time trigger does, and purges nothing. The
    columns of its stage hold texts and integers.
    """
    config = said(words["config"])
    is_plain = config.get("trigger", ["event"]) == ["event"] and config.get("evictor") is None
    records = [step["element"] for step in words["steps"] if "element" in step]
    fits = all(isinstance(key, str) and isinstance(value, int) for key, value, _ in records)
    return is_plain and fits and columnar_shape(assigner_of(in_our_words(config))) is not None


def _summed(key: Any, window: Window, records: Any, out: Any) -> None:
    out.collect((key, sum(value for _, value, _ in records), list(window) or "global"))


class _Script:
    """One scenario."""

    def __init__(self, words: Words, contents: Contents, restores: bool) -> None:
        config = in_our_words(said(words["config"]))
        self._restores = restores
        self._steps = words["steps"]
        operator = windowed(
            assigner_of(config),
            contents,
            _summed,
            trigger=trigger_of(config["trigger"]) if "trigger" in config else None,
            evictor=evictor_of(config.get("evictor")),
            allowed_lateness_ms=0 if config["kind"].startswith("proc_") else config.get("lateness", 0),
        )
        self._stage = WindowStage(operator)

    def play(self) -> Iterator[Difference]:
        for number, step in enumerate(self._steps):
            self._do(step)
            where = f"step {number}"
            found = [_words_of(record, time_ms) for record, time_ms in self._stage.taken()]
            yield from compare(f"{where}: fires", _sorted(step.get("fires", [])), _sorted(found))
            late = [[key, value, _word(time_ms)] for key, value, time_ms in self._stage.late()]
            yield from compare(f"{where}: late", _sorted(step.get("late", [])), _sorted(late))
            if self._restores:
                self._stage = self._stage.restored()

    def _do(self, step: Words) -> None:
        stage = self._stage
        match step:
            case {"element": [key, value, None]}:
                stage.put((key, value, None))
            case {"element": [key, value, time]}:
                stage.put((key, value, _ms(time)), at=[_ms(time)])
            case {"watermark": time}:
                stage.put_watermark(_ms(time))
            case {"processing_time": time}:
                stage.put_clock(_ms(time))
            case {"snapshot_and_restore": True}:
                self._stage = stage.restored()
            case _:
                raise UnknownWord(f"found the step {step}")


class _ColumnScript(_Script):
    """The same over columns."""

    def __init__(self, words: Words, restores: bool) -> None:
        config = said(words["config"])
        self._restores = restores
        self._steps = words["steps"]
        shape = columnar_shape(assigner_of(in_our_words(config)))
        assert shape is not None
        lateness_ms = config.get("lateness", 0)
        self._stage = ColumnStage(ColumnarWindows(shape, ["key"], {"sum": Sum("value")}, lateness_ms))


def _ms(time: int | str) -> int:
    match time:
        case int():
            return time
        case "max":
            return END_OF_TIME
        case "min":
            return NO_WATERMARK
    raise UnknownWord(f"found the time {time!r}")


def _words_of(result: Any, time_ms: int | None) -> Words:
    if len(result) == 3:
        key, total, window = result
    else:
        key, *window, total = result
    return {"key": key, "sum": total, "window": window, "timestamp": _word(time_ms)}


def _word(time_ms: int | None) -> int | str | None:
    return "max" if time_ms == END_OF_TIME else time_ms


def _sorted(items: list[Any]) -> list[Any]:
    return sorted(items, key=repr)
