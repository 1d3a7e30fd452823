"""What a job must be like to be resumed, by `submit(resume="latest")` or `understudy run --resume latest`."""

from __future__ import annotations

from dataclasses import replace

from ...messages import CheckpointRetention
from ..api.checks import one_of
from ..api.errors import InvalidSetting
from ..api.translation import Translation

RESUME = ("latest",)
"""What `resume` may be."""


def to_be_resumed(translation: Translation, resume: str, work_dir: str) -> Translation:
    """The job, which keeps its checkpoints however it ends, unless it has finished. Raises InvalidSetting."""
    one_of("resume", resume, RESUME)
    graph = translation.graph
    checkpoints = graph.checkpoints
    if work_dir and checkpoints.directory.startswith(f"{work_dir}/"):
        raise InvalidSetting(
            f"resume={resume!r}: job {graph.name!r} has no checkpoint_dir that outlives its process: set one on the "
            "StreamEnvironment"
        )
    if checkpoints.retention is CheckpointRetention.NEVER:
        raise InvalidSetting(
            f'resume={resume!r} and retain_checkpoints="never" contradict each other: leave one of them out'
        )
    kept = replace(checkpoints, retention=CheckpointRetention.ON_CANCELLATION)
    return replace(translation, graph=replace(graph, checkpoints=kept))
