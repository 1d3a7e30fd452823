"""What a job must be like to be resumed, by `submit(resume=...)` or `understudy run --resume ...`."""

from __future__ import annotations

from dataclasses import replace

from ...messages import CheckpointRetention
from ..api.checks import one_of
from ..api.errors import InvalidSetting
from ..api.other_jobs import UNNAMED
from ..api.translation import Translation
from ..api.warned import warn

RESUME = ("latest", SAVEPOINT := "savepoint")
"""What `resume` may be."""


def warn_of_no_name(name: str, resume: str | None) -> None:
    """Of a job that is to be resumed, and has the name of all that have none."""
    if resume is not None and name == UNNAMED:
        warn(
            f"resume={resume!r} finds the job by its name, and {name!r} is that of every job without one: another "
            'program in this checkpoint_dir would go on from its checkpoints. Write submit(env, name="orders", ...)'
        )


def to_be_resumed(translation: Translation, resume: str, work_dir: str, *, is_named: bool) -> Translation:
    """The job, which keeps its checkpoints however it ends, unless it has finished. Raises InvalidSetting.

    `is_named`: whether it names a savepoint.
    """
    one_of("resume", resume, RESUME)
    if resume == SAVEPOINT and not is_named:
        raise InvalidSetting(
            f"resume={resume!r}: name the savepoint in from_savepoint (--from-savepoint); to go on from the newest "
            "checkpoint, write resume='latest' (--resume latest)"
        )
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
