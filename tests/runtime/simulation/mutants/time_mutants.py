"""Mutants of event time: timers and watermarks that are lost, come twice, too early or in the wrong order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from understudy.actors.barriers.input_gate import InputGate
from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK, CheckpointBarrier, Watermark
from understudy.actors.flow.outputs import TaskOutputs
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.split_watermarks import SplitWatermarks
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.actors.tasks.task_loop import TaskLoop
from understudy.actors.tasks.task_time import TaskTime
from understudy.actors.tasks.task_watermarks import TaskWatermarks
from understudy.messages import InputWatermark
from understudy.runtime.simulation.histories import mix, time_themes
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.state.backends.timer_queue import TimerEntry, TimerQueue
from understudy.state.checkpoints import assignment

from .buffer_mutants import kept
from .mutant import CALM, CUT, OUTPUT, Patch, Scenarios, mutant, nothing


def led(theme: mix.Theme, *topologies: str) -> Scenarios:
    """The histories of a theme, of these jobs."""
    seeds: list[int] = []

    def scenario(number: int) -> Scenario:
        while len(seeds) <= number:
            first = seeds[-1] + 1 if seeds else 0
            seeds.append(
                next(seed for seed in range(first, first + 1_000) if _is_of(mix.themed(theme, seed), topologies))
            )
        return mix.themed(theme, seeds[number])

    return scenario


def _is_of(scenario: Scenario, topologies: tuple[str, ...]) -> bool:
    return not topologies or scenario.topology in topologies


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time))
def timers_are_not_restored(patch: Patch) -> None:
    patch.setattr(TimerQueue, "load", nothing)


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time, "clocked"))
def timers_of_the_clock_are_not_restored(patch: Patch) -> None:
    load = TimerQueue.load
    patch.setattr(TimerQueue, "load", lambda self, stored: load(self, stored) if "event" in self.name else None)


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time, "reminders", "apart"))
def timers_fire_again_after_a_restore(patch: Patch) -> None:
    """A snapshot holds the last one that has fired, too."""
    due, freeze = TimerQueue.due, TimerQueue.freeze

    def remembering(self: TimerQueue, until_ms: int) -> Iterator[TimerEntry]:
        for timer in due(self, until_ms):
            self.fired = timer  # type: ignore[attr-defined]
            yield timer

    def generous(self: TimerQueue) -> Any:
        frozen = freeze(self)
        frozen.timers = [*frozen.timers, *([self.fired] if hasattr(self, "fired") else [])]
        return frozen

    patch.setattr(TimerQueue, "due", remembering)
    patch.setattr(TimerQueue, "freeze", generous)


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "reminders", "apart"))
def timers_fire_before_their_time(patch: Patch) -> None:
    fire = KeyedOperator._fire
    patch.setattr(
        KeyedOperator,
        "_fire",
        lambda self, queue, domain, until_ms, out: fire(self, queue, domain, min(until_ms + 900, END_OF_TIME), out),
    )


@mutant(OUTPUT, within=60, scenarios=led(time_themes.between_timers))
def a_barrier_between_two_timers_loses_those_that_have_not_fired(patch: Patch) -> None:
    due, freeze = TimerQueue.due, TimerQueue.freeze

    def remembering(self: TimerQueue, until_ms: int) -> Iterator[TimerEntry]:
        self.until_ms = until_ms  # type: ignore[attr-defined]
        return due(self, until_ms)

    def without_those_due(self: TimerQueue) -> Any:
        frozen = freeze(self)
        frozen.timers = [timer for timer in frozen.timers if timer[0] > getattr(self, "until_ms", NO_WATERMARK)]
        return frozen

    patch.setattr(TimerQueue, "due", remembering)
    patch.setattr(TimerQueue, "freeze", without_those_due)


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "apart", "windows"))
def the_watermark_goes_on_before_its_timers_fire(patch: Patch) -> None:
    advance = OperatorChain.advance

    def hasty(self: OperatorChain, watermark_ms: int) -> bool:
        if watermark_ms != END_OF_TIME and self.operators[0]._passes(watermark_ms):
            self._broadcast(Watermark(watermark_ms))
        return advance(self, watermark_ms)

    patch.setattr(OperatorChain, "advance", hasty)


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time))
def watermarks_are_not_restored(patch: Patch) -> None:
    patch.setattr(TaskWatermarks, "restore", nothing)


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time))
def a_watermark_goes_back_when_it_is_restored(patch: Patch) -> None:
    snapshot = TaskWatermarks.snapshot

    def older(self: TaskWatermarks, channels: Any) -> tuple[InputWatermark, ...]:
        stored = snapshot(self, channels)
        return tuple(
            InputWatermark(
                each.edge, each.producer_subtask, each.input_index, max(each.watermark_ms - 1_000, NO_WATERMARK)
            )
            for each in stored
        )

    patch.setattr(TaskWatermarks, "snapshot", older)


@mutant(OUTPUT, within=60, scenarios=led(mix.time_rescaled, "apart", "windows", "either"))
def after_a_rescale_event_time_is_that_of_the_fastest(patch: Patch) -> None:
    assign = assignment.assign_watermarks

    def furthest(by_subtask: Any, parallelism: int) -> Any:
        shares = assign(by_subtask, parallelism)
        if len(by_subtask) == parallelism:
            return shares
        most: dict[int, int] = {}
        for each in (each for watermarks in by_subtask for each in watermarks):
            most[each.input_index] = max(each.watermark_ms, most.get(each.input_index, NO_WATERMARK))
        return [
            tuple(
                InputWatermark(each.edge, each.producer_subtask, each.input_index, most[each.input_index])
                for each in share
            )
            for share in shares
        ]

    patch.setattr(assignment, "assign_watermarks", furthest)


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "apart"))
def a_restored_channel_that_had_said_nothing_is_as_far_as_the_others(patch: Patch) -> None:
    snapshot = TaskWatermarks.snapshot
    patch.setattr(
        TaskWatermarks,
        "snapshot",
        lambda self, channels: tuple(each for each in snapshot(self, channels) if each.watermark_ms != NO_WATERMARK),
    )


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time, "apart", "windows", "either"))
def the_fastest_channel_says_how_far_event_time_is(patch: Patch) -> None:
    patch.setattr(TaskWatermarks, "_least", lambda self: max(self._by_channel, default=NO_WATERMARK))


@mutant(CALM, OUTPUT, within=10, scenarios=led(time_themes.falls_silent))
def a_channel_that_is_idle_holds_everybody(patch: Patch) -> None:
    patch.setattr(TaskWatermarks, "set_idle", lambda self, channel, is_idle: False)


@mutant(CALM, OUTPUT, within=10, scenarios=led(time_themes.falls_silent))
def nothing_is_ever_idle(patch: Patch) -> None:
    patch.setattr(SplitWatermarks, "look", nothing)


@mutant(OUTPUT, within=40, scenarios=led(time_themes.falls_silent))
def event_time_goes_back_to_that_of_an_idle_channel_on_restore(patch: Patch) -> None:
    def plain(self: TaskWatermarks, channels: Any) -> tuple[InputWatermark, ...]:
        return tuple(
            InputWatermark(channel.edge, channel.producer_subtask, channel.input_index, watermark)
            for channel, watermark in zip(channels, self._by_channel, strict=True)
        )

    patch.setattr(TaskWatermarks, "snapshot", plain)


@mutant(OUTPUT, within=10, scenarios=led(time_themes.event_time))
def event_time_does_not_end_with_the_data(patch: Patch) -> None:
    receive = TaskWatermarks.receive
    patch.setattr(
        TaskWatermarks,
        "receive",
        lambda self, channel, timestamp_ms, now_ms=0.0: (
            timestamp_ms != END_OF_TIME and receive(self, channel, timestamp_ms, now_ms)
        ),
    )


def kept_with_time(seed: int) -> Scenario:
    """Small batches that are kept for long, in a job that sees whether its records are in time."""
    return replace(kept(seed), topology=("apart", "windows", "reminders")[seed % 3])


@mutant(OUTPUT, within=20, scenarios=kept_with_time)
def a_watermark_overtakes_what_is_kept(patch: Patch) -> None:
    send = TaskOutputs.send_watermark

    def hasty(self: TaskOutputs, element: Any) -> None:
        if isinstance(element, Watermark):
            for channel in self.channels:
                channel.send(element)
        else:
            send(self, element)

    patch.setattr(TaskOutputs, "send_watermark", hasty)


@mutant(OUTPUT, within=60, scenarios=led(time_themes.event_time, "windows", "apart", "sessions"))
def a_stop_with_a_savepoint_ends_event_time(patch: Patch) -> None:
    trigger: Callable[..., None] = TaskLoop.trigger

    def ending(self: TaskLoop, barrier: CheckpointBarrier) -> None:
        if barrier.stop and self.source is not None:
            self._parts.outputs.send_watermark(Watermark(END_OF_TIME))
        trigger(self, barrier)

    patch.setattr(TaskLoop, "trigger", ending)


@mutant(CUT, OUTPUT, within=60, scenarios=led(time_themes.between_timers))
def timers_fire_behind_the_barrier_of_a_stop(patch: Patch) -> None:
    hold = TaskLoop._hold
    patch.setattr(
        TaskLoop, "_hold", lambda self, checkpoint_id: hold(self, None if self.source is None else checkpoint_id)
    )


@mutant(OUTPUT, within=40, scenarios=led(mix.time_in_flight))
def watermarks_in_flight_come_before_the_records(patch: Patch) -> None:
    restore = InputGate.restore
    patch.setattr(InputGate, "restore", lambda self, in_flight: restore(self, _watermarks_first(in_flight)))


def _watermarks_first(in_flight: Any) -> Any:
    return {
        channel: sorted(elements, key=lambda each: not isinstance(each, Watermark))
        for channel, elements in in_flight.items()
    }


@mutant(OUTPUT, within=40, scenarios=led(time_themes.event_time, "latecomers"))
def what_a_split_had_promised_is_not_restored(patch: Patch) -> None:
    patch.setattr(SplitWatermarks, "restore", nothing)
    patch.setattr(TaskTime, "restore", nothing)
