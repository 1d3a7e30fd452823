"""backpressure.json: levels, sampling, and what somebody who asks is told."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.actors.jobs.back_pressure import (
    BackPressureAnswer,
    BackPressureLevel,
    BackPressureMeasured,
    BackPressureRequested,
    BackPressureSettings,
    BackPressureTracker,
    SubtaskBackPressure,
    TakeSamples,
    VertexBackPressure,
)
from understudy.actors.jobs.vertex_samples import TriggerSample, VertexSamples
from understudy.messages import JobId, StackTraceSample, SubtaskIndex, VertexId

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
            yield from _ask(words, None, 0)
        case {"metrics_ms_per_second": metrics}:
            yield from _ask(words, VertexBackPressure.of(map(_of_metrics, metrics), STARTED_MS), 0)
        case {"stats": {"ratios": ratios, "age_ms": age_ms}}:
            shares = (SubtaskBackPressure(SubtaskIndex(index), ratio) for index, ratio in enumerate(ratios))
            yield from _ask(words, VertexBackPressure.of(shares, STARTED_MS), age_ms)
        case {"name": name} if name in PROOFS:
            for proof in PROOFS[name]:
                proof()
        case _:
            raise Skipped(f"told in words, and no test is known to hold it: scenarios/{words['name']}")


def _of_metrics(metrics: Words) -> SubtaskBackPressure:
    return SubtaskBackPressure.of_times(
        SubtaskIndex(metrics["subtask"]), metrics["backPressured"], metrics["idle"], metrics["busy"]
    )


# ------------------------------------------------------------------------------------------------- asking


def _ask(words: Words, figures: VertexBackPressure | None, age_ms: float) -> Iterator[Difference]:
    settings = BackPressureSettings(refresh_interval_ms=words.get("refresh_interval_ms", 60_000))
    tracker = BackPressureTracker(settings)
    if figures is not None:
        tracker.on(BackPressureMeasured(VERTEX, figures), STARTED_MS)
    effects = tracker.on(BackPressureRequested(VERTEX, 4), STARTED_MS + age_ms)
    (answer,) = (effect for effect in effects if isinstance(effect, BackPressureAnswer))
    found = _response_of(answer)
    if "end-timestamp" in found:  # the file gives a name to the time at which the figures were complete
        found["end-timestamp"] = (words.get("stats") or {}).get("end_timestamp")
    if "end-timestamp" not in words["response"]:
        found.pop("end-timestamp", None)
    yield from compare("response", words["response"], found)
    is_sampled = any(isinstance(effect, TakeSamples) for effect in effects)
    yield from compare("sample_triggered", words.get("sample_triggered", is_sampled), is_sampled)


def _response_of(answer: BackPressureAnswer) -> Words:
    """As Flink's REST answer says it."""
    response: Words = {"status": "deprecated" if answer.is_outdated else "ok"}
    if answer.figures is None:
        return response
    return response | {
        "backpressure-level": answer.figures.level.value,
        "end-timestamp": answer.figures.end_ms,
        "subtasks": [_subtask(subtask) for subtask in answer.figures.subtasks],
    }


def _subtask(subtask: SubtaskBackPressure) -> Words:
    found: Words = {
        "subtask": subtask.subtask_index,
        "backpressure-level": subtask.level.value,
        "ratio": subtask.ratio,
    }
    if subtask.idle_ratio is not None:
        found["idleRatio"] = subtask.idle_ratio
    if subtask.busy_ratio is not None:
        found["busyRatio"] = subtask.busy_ratio
    return found


# ----------------------------------------------------------------------------------------------- sampling


def _sample(words: Words) -> Iterator[Difference]:
    """By the part of the JobManager that has tasks sampled, with what their TaskManagers would answer."""
    taken_of = words["samples_blocked"]
    rounds = [*taken_of, *[[]] * (words.get("subtasks", 0) - len(taken_of))]
    settings = BackPressureSettings(samples=max(map(len, rounds), default=1))
    running = tests.running_subtasks(VERTEX, len(rounds))
    vertex, samples = tests.vertex(VERTEX, len(running)), VertexSamples(JOB, settings)
    first, triggered = samples.request(vertex, running, STARTED_MS)
    second, again = samples.request(vertex, running, STARTED_MS)
    orders = [effect.message for effect in triggered if isinstance(effect, TriggerSample)]
    for order, taken in zip(orders, rounds, strict=True):
        answer = StackTraceSample(JOB, order.attempt_id, order.number, tuple(taken), ())
        samples.heard(answer, STARTED_MS, 0)
    known, _ = samples.request(vertex, running, STARTED_MS)
    report = samples.report(vertex, known, {}, STARTED_MS, 0)
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
