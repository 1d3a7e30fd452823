"""How a TaskManager of a job is started, going by the job's graph, its program and its cluster's settings."""

from __future__ import annotations

from ...messages import JobGraph
from ..high_availability.submissions import StoredProgram
from ..output.log_levels import LogLevels
from ..system import CurveKeys
from .cluster_settings import ClusterSettings
from .task_manager_process import TaskManagerLaunch


def launch_of(
    graph: JobGraph, program: StoredProgram, settings: ClusterSettings, job_manager: str, keys: CurveKeys
) -> TaskManagerLaunch:
    """Of the job's first one. `job_manager`: the actor's address."""
    return TaskManagerLaunch(
        job_id=graph.job_id,
        index=0,
        slots=settings.slots_per_task_manager,
        job_manager_address=job_manager,
        host=settings.host,
        curve=keys,
        program=program.pickled,
        checkpoints=graph.checkpoints,
        state_backend=graph.state_backend,
        local_state=graph.local_state,
        buffer_timeout_ms=graph.buffer_timeout_ms,
        sys_path=program.sys_path,
        warm_up=program.warm_up,
        job_name=graph.name,
        log_levels=LogLevels.of_this_process(),
        slow_step_ms=graph.slow_step_ms,
        watermark_warn_ms=graph.watermark_warn_ms,
    )
