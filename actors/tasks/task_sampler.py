"""TaskSampler: looks at tasks again and again: are they held back by their outputs, and what runs in them?

A part of the TaskManager, on its thread, which the work of tasks does not delay. It looks at counters and at stacks
from outside, so a task that is sampled does nothing for it. Stacks are merged into a tree as they come, and the report
at the end is bounded. Flink: ThreadInfoSampleService.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...messages import ExecutionAttemptId, SampledFrame, StackTraceSample, TriggerStackTraceSample
from ..stacks import StackFrame, Stacks
from .task import Task

MAX_FRAMES = 4_000
"""Of one tree. Further ones count where they were called."""

HELD_BACK = StackFrame("(held back by its outputs)", "", 0, "state")
WAITS = StackFrame("(waits for input)", "", 0, "state")
WORKS = StackFrame("(works)", "", 0, "state")


@dataclass(frozen=True, slots=True)
class SampleDue:
    """To the TaskManager itself: the next sample of this attempt."""

    attempt_id: ExecutionAttemptId
    number: int
    delay_ms: int


class StackTree:
    """Stacks on top of each other: the same calls from the same place are one frame."""

    def __init__(self) -> None:
        self._frames: list[tuple[int, StackFrame]] = []
        self._samples: list[int] = []
        self._index: dict[tuple[int, StackFrame], int] = {}

    def add(self, stack: Iterable[StackFrame]) -> None:
        """The outermost frame first."""
        parent = -1
        for frame in stack:
            index = self._index.get((parent, frame))
            if index is None:
                if len(self._frames) == MAX_FRAMES:
                    return
                index = self._index[parent, frame] = len(self._frames)
                self._frames.append((parent, frame))
                self._samples.append(0)
            self._samples[index] += 1
            parent = index

    def frames(self) -> tuple[SampledFrame, ...]:
        return tuple(
            SampledFrame(parent, *frame, samples)
            for (parent, frame), samples in zip(self._frames, self._samples, strict=True)
        )


@dataclass(slots=True)
class _Sampling:
    wanted: TriggerStackTraceSample
    task: Task
    held_back: list[bool] = field(default_factory=list)
    tree: StackTree = field(default_factory=StackTree)


class TaskSampler:
    """Of one TaskManager."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._under_way: dict[ExecutionAttemptId, _Sampling] = {}

    def begin(self, wanted: TriggerStackTraceSample, task: Task) -> SampleDue | None:
        """Its first sample, which is due now; None: this sampling is under way. A newer one replaces an older one."""
        known = self._under_way.get(wanted.attempt_id)
        if known is not None and known.wanted.number >= wanted.number:
            return None
        self._under_way[wanted.attempt_id] = _Sampling(wanted, task)
        return SampleDue(wanted.attempt_id, wanted.number, wanted.delay_ms)

    def take(self, due: SampleDue, now_ms: float) -> StackTraceSample | None:
        """Look once; the report, if that was the last time. A task that has ended is looked at no further."""
        sampling = self._under_way.get(due.attempt_id)
        if sampling is None or sampling.wanted.number != due.number:
            return None
        wanted, has_ended = sampling.wanted, sampling.task.state.is_terminal
        if not has_ended:
            self._look(sampling, now_ms)
        if not has_ended and len(sampling.held_back) < wanted.samples:
            return None
        del self._under_way[due.attempt_id]
        return StackTraceSample(
            wanted.job_id, wanted.attempt_id, wanted.number, tuple(sampling.held_back), sampling.tree.frames()
        )

    def _look(self, sampling: _Sampling, now_ms: float) -> None:
        task = sampling.task
        stack = self._stacks.of(task.deployment.slot, sampling.wanted.depth) if task.counters.is_in_step else ()
        is_held_back = task.counters.is_held_back(now_ms)
        sampling.held_back.append(is_held_back)
        if stack and task.counters.is_in_step:  # before and after: else it may be the stack of a neighbour
            sampling.tree.add((WORKS, *stack))
        else:
            sampling.tree.add((HELD_BACK if is_held_back else WAITS,))
