"""What is said to sample tasks: is each held back by its outputs, and what runs in it?

Flink: StackTraceSampleCoordinator and its messages, JobVertexBackPressureInfo, VertexFlameGraph.
"""

from __future__ import annotations

from .ids import ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from .registry import message


@message
class TriggerStackTraceSample:
    """JobManager -> TaskManager: look at this attempt `samples` times. Answered with StackTraceSample; idempotent."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    number: int
    """Which sampling of the job this is."""
    samples: int
    delay_ms: int
    """Between two samples."""
    depth: int
    """The number of frames of a stack that are kept at most, the innermost ones."""


@message
class SampledFrame:
    """A place in a tree of stacks, and in how many samples it was there."""

    parent: int
    """Index of the frame that called it, in the same tuple and before it; -1 for an outermost one."""
    function: str
    path: str
    line: int
    """Where the function begins."""
    kind: str
    """"user", "understudy", "library", or "state" for what is no frame: that the task waits, and what for."""
    samples: int


@message
class StackTraceSample:
    """TaskManager -> JobManager: what was seen of one attempt."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    number: int
    held_back: tuple[bool, ...]
    """Sample by sample: whether its outputs held it back. Fewer than wanted when it ended meanwhile."""
    frames: tuple[SampledFrame, ...]


@message
class RequestBackPressure:
    """Client -> JobManager. Answered with VertexBackPressureReport."""

    job_id: JobId
    vertex: str
    """Id or name of the vertex, or the name or id of one of its operators."""
    is_to_wait: bool = False
    """Whether the answer waits for samples, where none are fresh; else the known figures come at once, and samples are
    taken for those who ask later.
    """


@message
class SubtaskBackPressureReport:
    """How often the outputs of one subtask held it back, by samples."""

    subtask_index: SubtaskIndex
    level: str
    """"ok", "low" or "high"."""
    ratio: float
    """Share of the samples in which its outputs held it back."""
    idle_ratio: float | None = None
    busy_ratio: float | None = None
    """By its own clocks, in the last seconds; None when they are not known."""


@message
class VertexBackPressureReport:
    """Flink: JobVertexBackPressureInfo."""

    job_id: JobId
    vertex_id: VertexId
    vertex_name: str
    status: str
    """"ok", or "deprecated": nothing is known, or the figures are old; new samples are being taken."""
    level: str = ""
    """That of its greatest ratio; empty as long as nothing is known."""
    end_ms: int = 0
    """Wall time of the last sample."""
    subtasks: tuple[SubtaskBackPressureReport, ...] = ()


@message
class RequestFlameGraph:
    """Client -> JobManager. Answered with FlameGraph, from the same samples as back-pressure."""

    job_id: JobId
    vertex: str
    subtask_index: SubtaskIndex = SubtaskIndex(-1)
    """-1: of all subtasks together."""
    kind: str = "full"
    """"full", "on_cpu": only while the task worked, or "off_cpu": only while it did not."""
    is_to_wait: bool = False


@message
class FlameGraph:
    """A tree, as a list in which each frame comes after the one that called it. Flink: VertexFlameGraph."""

    job_id: JobId
    vertex_id: VertexId
    vertex_name: str
    end_ms: int
    """Wall time of the last sample; 0 as long as there are none."""
    samples: int
    frames: tuple[SampledFrame, ...]
