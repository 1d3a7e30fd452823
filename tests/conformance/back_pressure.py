"""backpressure.json: levels, sampling, and what somebody who asks is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from understudy.actors.jobs.back_pressure import BackPressureAnswer, BackPressureLevel, BackPressureSettings
from understudy.actors.jobs.vertex_samples import Ratios, TriggerSample, VertexSamples
from understudy.messages import (
    JobId,
    StackTraceSample,
    SubtaskBackPressureReport,
    SubtaskIndex,
    TriggerStackTraceSample,
    VertexBackPressureReport,
    VertexId,
)

from ..actors.jobs import test_back_pressure as tests
from .scenario import Difference, Scenario, Skipped, UnknownWord, Words, compare, scenarios_of

KEYS = frozenset({"levels", "samples_blocked", "metrics_ms_per_second", "sample_triggered"})
"""Words that only this schema has."""

JOB, VERTEX = JobId("job"), VertexId("vertex")
STARTED_MS = 1_000_000.0

SETTINGS = {
    "samples": "samples",
    "delay_between_samples_ms": "delay_between_samples_ms",
    "refresh_interval_ms": "refresh_interval_ms",
    "cleanup_interval_ms": "cleanup_interval_ms",
}
"""The file's names of defaults, and ours; stack samples have a depth, and ours are no stacks."""

PROOFS = {
    "trigger_refused": [
        tests.test_no_samples_are_taken_while_some_are_pending,
        tests.test_after_the_jobs_end_no_samples_are_taken_and_late_ones_are_dropped,
    ]
}


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "levels", _level, lambda case: str(case["ratio"]))
    rules = document.get("rules", {})
    if isinstance(rules, dict) and "defaults" in rules:
        yield Scenario("rules/defaults", lambda: _defaults(rules["defaults"]))
    yield from scenarios_of(document, "scenarios", _play)


def _level(case: Words) -> Iterator[Difference]:
    yield from compare("level", case["level"], BackPressureLevel.of(case["ratio"]).value)


def _defaults(defaults: Words) -> Iterator[Difference]:
    for name, wanted in defaults.items():
        if name in SETTINGS:
            yield from compare(name, wanted, getattr(BackPressureSettings(), SETTINGS[name]))
        elif name != "max_stack_depth":
            raise UnknownWord(f"no setting is known for {name!r}")


def _play(words: Words) -> Iterator[Difference]:
    match words:
        case {"samples_blocked": _}:
            yield from _sample(words)
        case {"stats": None} | {"metrics_ms_per_second": None | []}:
            yield from _ask(words, None)
        case {"metrics_ms_per_second": metrics}:
            yield from _ask_of_metrics(words, metrics)
        case {"stats": {"ratios": ratios} as stats}:
            age_ms = stats.get("age_ms") or 0
            taken_of = [_samples(100, round(100 * ratio)) for ratio in ratios]
            yield from _ask(words, _Sampled(taken_of, words.get("refresh_interval_ms", 60_000)), age_ms)
        case {"name": name} if name in PROOFS:
            for proof in PROOFS[name]:
                proof()
        case _:
            raise Skipped(f"told in words, and no test is known to hold it: scenarios/{words['name']}")


def _samples(number: int, blocked: int) -> list[bool]:
    return [True] * blocked + [False] * (number - blocked)


class _Sampled:
    """A vertex in the part of the JobManager that has tasks sampled, with what their TaskManagers would answer."""

    def __init__(self, taken_of: Sequence[Sequence[bool]], refresh_interval_ms: int = 60_000) -> None:
        self._taken_of = taken_of
        self._running = tests.running_subtasks(VERTEX, len(taken_of))
        self._vertex = tests.vertex(VERTEX, len(taken_of))
        most = max(map(len, taken_of), default=1)
        self._book = VertexSamples(JOB, BackPressureSettings(samples=most, refresh_interval_ms=refresh_interval_ms))

    def ask(self, now_ms: float) -> tuple[BackPressureAnswer, list[TriggerStackTraceSample]]:
        answer, effects = self._book.request(self._vertex, self._running, now_ms)
        return answer, [effect.message for effect in effects if isinstance(effect, TriggerSample)]

    def take(self, orders: Sequence[TriggerStackTraceSample]) -> None:
        for order, taken in zip(orders, self._taken_of, strict=True):
            self._book.heard(StackTraceSample(JOB, order.attempt_id, order.number, tuple(taken), ()), STARTED_MS, 0)

    def report(self, answer: BackPressureAnswer, ratios: Ratios | None = None) -> VertexBackPressureReport:
        return self._book.report(self._vertex, answer, ratios or {}, STARTED_MS, 0)


# ------------------------------------------------------------------------------------------------- asking


def _ask(
    words: Words, vertex: _Sampled | None, age_ms: float = 0, ratios: Ratios | None = None
) -> Iterator[Difference]:
    """`vertex`: one to sample first; None: nothing is known."""
    if vertex is None:
        vertex = _Sampled([[]])
    else:
        vertex.take(vertex.ask(STARTED_MS)[1])
    answer, orders = vertex.ask(STARTED_MS + age_ms)
    found = _response_of(vertex.report(answer, ratios), ratios)
    if "end-timestamp" in found:  # the file gives a name to the time at which the figures were complete
        found["end-timestamp"] = (words.get("stats") or {}).get("end_timestamp")
    if "end-timestamp" not in words["response"]:
        found.pop("end-timestamp", None)
    yield from compare("response", words["response"], found)
    is_sampled = bool(orders)
    yield from compare("sample_triggered", words.get("sample_triggered", is_sampled), is_sampled)


def _ask_of_metrics(words: Words, metrics: Sequence[Words]) -> Iterator[Difference]:
    """As many samples as a second has ms; subtasks that the file leaves out are not compared."""
    blocked = {each["subtask"]: each["backPressured"] for each in metrics}
    taken_of = [_samples(1000, blocked.get(index, 0)) for index in range(max(blocked) + 1)]
    ratios = {SubtaskIndex(each["subtask"]): (each["idle"] / 1000, each["busy"] / 1000) for each in metrics}
    yield from _ask(words, _Sampled(taken_of), ratios=ratios)


def _response_of(report: VertexBackPressureReport, wanted: Ratios | None) -> Words:
    """As Flink's REST answer says it."""
    response: Words = {"status": report.status}
    if not report.level:
        return response
    return response | {
        "backpressure-level": report.level,
        "end-timestamp": report.end_ms,
        "subtasks": [_subtask(each) for each in report.subtasks if wanted is None or each.subtask_index in wanted],
    }


def _subtask(subtask: SubtaskBackPressureReport) -> Words:
    found: Words = {
        "subtask": subtask.subtask_index,
        "backpressure-level": subtask.level,
        "ratio": subtask.ratio,
    }
    if subtask.idle_ratio is not None:
        found["idleRatio"] = subtask.idle_ratio
    if subtask.busy_ratio is not None:
        found["busyRatio"] = subtask.busy_ratio
    return found


# ----------------------------------------------------------------------------------------------- sampling


def _sample(words: Words) -> Iterator[Difference]:
    taken_of = words["samples_blocked"]
    vertex = _Sampled([*taken_of, *[[]] * (words.get("subtasks", 0) - len(taken_of))])
    first, orders = vertex.ask(STARTED_MS)
    second, again = vertex.ask(STARTED_MS)
    vertex.take(orders)
    known, _ = vertex.ask(STARTED_MS)
    report = vertex.report(known)
    found = {
        "first_trigger": first.figures is None and bool(orders),
        "second_trigger_while_pending": bool(again),
        "stats_while_pending": second.figures,
        "ratios": [subtask.ratio for subtask in report.subtasks],
        "levels": [subtask.level for subtask in report.subtasks],
        "vertex_level": report.level,
        "max_ratio": known.figures.max_ratio if known.figures else None,
    }
    for name, wanted in words["expect"].items():
        if name not in found:
            raise UnknownWord(f"nothing can be said about {name!r}")
        yield from compare(name, wanted, found[name])
