"""JobTrial: one job of a user's, prepared once and then tried in as many histories as one likes.

The failure-free run comes first. It says what the job commits, and how long it takes; faults begin within that time.
"""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

from ....messages import JobId, JobStatus
from ...api.environment import StreamEnvironment
from ...api.restart import exponential_delay, no_restart
from ...api.translation import Translation, translate
from ..histories.scenario import random_faults, random_slow_process
from ..world.cluster import STORAGE, SimulatedCluster
from ..world.faults import JOB_MANAGER, Fault, KillProcess
from .committed_output import sinks_outside_of_the_world
from .pacing import paced
from .tried import Judge, Tried, try_once

RECOVERY_MS = 5 * 60_000.0
"""How long a job may take after its last fault, besides the time that it takes without any."""

_LONGEST_MS = 60 * 60_000.0
"""A job that takes longer without faults is taken to hang."""

_CHECKPOINTS = 10
"""A job is to last for about this number of checkpoints; sources without a rate are slowed down to this."""

_TOLERANCE = 2
"""By this factor it may last longer or shorter."""

_FIRST_GUESS = 30
"""Into how many batches sources divide their records, where they can."""


class Unfit(ValueError):
    """This job cannot be tried as it is; the text says what to change."""


class JobTrial:
    """Raises Unfit for a job that cannot be tried, and AssertionError for one that fails without any fault."""

    def __init__(
        self, env: StreamEnvironment, *, task_managers: int = 2, slots_per_task_manager: int = 1, **settings: Any
    ) -> None:
        """`settings`: more of them, for each SimulatedCluster."""
        self._task_managers = task_managers
        self._slots = slots_per_task_manager
        self._settings = {"slot_timeout_ms": 300_000, **settings}
        self._plain = self._translated(env)
        self._translation = self._plain
        self.reference = self._run_calmly(_checked(env, self._plain))

    def faults_of(self, seed: int) -> tuple[Fault, ...]:
        """The random faults of this seed; never the JobManager's death, which is the end of the job.

        Where barriers may overtake what is in flight, a slow process sees to it that there is something.
        """
        chance = random.Random(f"faults {seed}")
        faults = random_faults(chance, self._task_managers, self.reference.virtual_ms)
        if self._translation.graph.checkpoints.alignment_timeout_ms is not None:
            faults = (*faults, random_slow_process(chance, self._task_managers, self.reference.virtual_ms))
        return tuple(fault for fault in faults if not (isinstance(fault, KillProcess) and fault.who == JOB_MANAGER))

    def run(self, seed: int, faults: tuple[Fault, ...], judge: Judge) -> Tried:
        """One history, judged by the world's own oracles too. Deterministic."""
        last_fault_ms = max((fault.until_ms for fault in faults), default=0.0)
        limit_ms = last_fault_ms + self.reference.virtual_ms + RECOVERY_MS
        return self._run(self._translation, seed, faults, limit_ms, judge)

    # ---- inside

    def _run_calmly(self, interval_ms: int) -> Tried:
        """Without faults, restarts and hurry: slowly enough, and not much too slowly."""
        wanted_ms = _CHECKPOINTS * interval_ms
        pause_ms = wanted_ms / _FIRST_GUESS
        tried = self._run_at(pause_ms)
        if not wanted_ms / _TOLERANCE < tried.virtual_ms < wanted_ms * _TOLERANCE:
            tried = self._run_at(pause_ms * wanted_ms / max(tried.virtual_ms, pause_ms))
        if tried.violations:
            raise AssertionError(f"without any injected fault: {tried.violations[0]}") from tried.crash
        if tried.status != JobStatus.FINISHED.value:
            raise AssertionError(f"without any injected fault, the job is {tried.status}")
        return tried

    def _run_at(self, pause_ms: float) -> Tried:
        self._translation = paced(self._plain, pause_ms)
        calm = replace(self._translation, graph=replace(self._translation.graph, restart=no_restart()))
        return self._run(calm, 0, (), _LONGEST_MS, lambda status, output: ())

    def _run(
        self, translation: Translation, seed: int, faults: tuple[Fault, ...], limit_ms: float, judge: Judge
    ) -> Tried:
        with SimulatedCluster(self._task_managers, self._slots, seed=seed, faults=faults, **self._settings) as cluster:
            return try_once(cluster, translation, limit_ms, judge)

    def _translated(self, env: StreamEnvironment) -> Translation:
        """Patient enough for more failures than a job is likely to meet in its life."""
        patient = copy.copy(env)
        patient.restart = exponential_delay(initial_ms=300, max_ms=10_000)
        patient.max_same_failures = None
        patient.checkpoints = replace(
            env.checkpoints,
            directory="",
            timeout_ms=min(env.checkpoints.timeout_ms, 20_000),
            tolerable_failures=1_000_000,
        )
        return translate(
            patient,
            default_parallelism=self._task_managers * self._slots,
            task_managers=self._task_managers,
            work_dir=STORAGE,
            slots=self._slots,
            job_id=JobId("job-1"),
        )


def _checked(env: StreamEnvironment, translation: Translation) -> int:
    """The job's checkpoint interval in ms; raises Unfit."""
    for vertex in translation.graph.vertices:
        if not vertex.bounded:
            raise Unfit(f"{vertex.name!r} never ends, so there is no result to compare: give its source a bound")
    if names := sinks_outside_of_the_world(translation):
        raise Unfit(
            f"sink {', '.join(map(repr, names))} writes real files, which no simulated failure touches: "
            "for the simulation give it a path that begins with sim://"
        )
    if env.checkpoints.interval_ms is None:
        raise Unfit(
            "the job takes no checkpoints, so it survives no failure: give its environment checkpoint_interval_ms"
        )
    return env.checkpoints.interval_ms
