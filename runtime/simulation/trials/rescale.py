"""Rescale: the user of a job ends it with a savepoint, and goes on from there with another parallelism.

Carried out from outside of the cluster, while faults go on; a refused request is tried again. An operator that refuses
the new parallelism gets the one that it had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ....actors.errors import CannotRescale, StateDoesNotFit
from ....messages import JobStatusChanged, SubtaskIndex
from ...clusters.job_handle import JobHandle
from ..histories.actions import ClientAction
from ..histories.ending import wait_for_the_end
from ..histories.story import told_failure
from ..world.cluster import SimulatedCluster

_AGAIN_MS = 2_000.0
"""How long the user waits before it tries again what was refused."""

_DISPOSALS = 10
"""How often the user tries to dispose of a savepoint."""

Submit = Callable[[int, str | None], JobHandle]
"""Starts the job with this parallelism (0: its environment's), from the savepoint at a path, or from the beginning."""


@dataclass(frozen=True, slots=True)
class Rescale(ClientAction):
    """End the job with a savepoint, and submit it again from there with this `parallelism`, which is that of operators
    without one of their own.

    `cancel`: cancel it with the savepoint; usually it is stopped with it. A job that ends before keeps its output.
    """

    parallelism: int = 2
    cancel: bool = False


class SavepointUser:
    """Runs one job through its rescalings. `patience_ms`: for each job; `quiet_ms`: from when on nothing is wrong."""

    def __init__(self, cluster: SimulatedCluster, submit: Submit, patience_ms: float, quiet_ms: float) -> None:
        self._cluster = cluster
        self._submit = submit
        self._patience_ms = patience_ms
        self._quiet_ms = quiet_ms
        self._savepoints: list[str] = []
        self._parallelism = 0
        self._refusals: dict[JobHandle, str] = {}
        """Jobs whose source cannot go on with their parallelism, and what it said."""
        self.jobs: list[JobHandle] = [self._submitted(0, None)]
        self.done = 0
        """How often the job went on from a savepoint."""
        self.kept: list[str] = []
        """Which rescalings were refused, and by whom."""

    def run(self, actions: tuple[ClientAction, ...]) -> str:
        """The status at the end, as wait_for_the_end has it."""
        for action in actions:
            assert isinstance(action, Rescale), action
            self._cluster.run_until(
                lambda at_ms=action.at_ms: self._has_ended or self._cluster.now_ms >= at_ms,  # type: ignore[misc]
                max(0.0, action.at_ms - self._cluster.now_ms),
            )
            if (savepoint := self._end_with_savepoint(action)) is not None:
                self._restart(action, savepoint)
        return wait_for_the_end(self._job, self._patience_ms)

    def dispose_of_all(self) -> None:
        """At the end of a history, so that what is left of the job can be looked at."""
        for path in self._savepoints:
            for _ in range(_DISPOSALS):
                try:
                    self._cluster.dispose_savepoint(path).result(timeout=self._patience_ms / 1000)
                    break
                except Exception:  # noqa: BLE001  (any refusal: the storage may be in trouble still)
                    self._cluster.run_for(_AGAIN_MS)

    # ---- inside

    @property
    def _job(self) -> JobHandle:
        return self.jobs[-1]

    @property
    def _has_ended(self) -> bool:
        return self._job.status.is_terminal

    def _submitted(self, parallelism: int, savepoint: str | None) -> JobHandle:
        job = self._submit(parallelism, savepoint)

        def listen(event: Any) -> None:
            failure = event.failure if isinstance(event, JobStatusChanged) else None
            if failure is None:
                return
            told = told_failure(replace(failure, subtask_index=SubtaskIndex(-1)))  # all of them refuse
            if CannotRescale.__name__ in told:
                self._refusals.setdefault(job, told)

        job.on_event(listen)
        return job

    def _end_with_savepoint(self, action: Rescale) -> str | None:
        """The savepoint's path; None when the job ends by itself before there is one."""
        trace, job = self._cluster.trace, self._job
        give_up_ms = max(self._cluster.now_ms, self._quiet_ms) + self._patience_ms
        while not self._has_ended and self._cluster.now_ms < give_up_ms:
            trace.add("the user", "asks", action, "")
            asked = job.cancel_with_savepoint() if action.cancel else job.stop_with_savepoint()
            try:
                path: str = asked.result(timeout=self._patience_ms / 1000)
            except Exception as error:  # noqa: BLE001  (any refusal; the job goes on)
                trace.add("the user", "refused", action, f"{type(error).__name__}: {error}")
                self._cluster.run_for(_AGAIN_MS)
                continue
            trace.add("the user", "answered", action, path)
            self._savepoints.append(path)
            self._wait_for_the_end_of(job)
            return path
        return None

    def _restart(self, action: Rescale, savepoint: str) -> None:
        wanted, was = action.parallelism, self._parallelism
        if self._begin(action, wanted, savepoint) and not self._is_refused():
            self._parallelism = wanted
            return
        if (refusal := self._refusals.get(self._job)) is not None:
            self._keep(wanted, refusal)
            self._job.cancel()
            self._wait_for_the_end_of(self._job)
            self._begin(action, was, savepoint)

    def _begin(self, action: Rescale, parallelism: int, savepoint: str) -> bool:
        """Submit; whether it has the parallelism that was wanted. While storage is in trouble the user tries again."""
        cluster = self._cluster
        while True:
            try:
                self.jobs.append(self._submitted(parallelism, savepoint))
                self.done += 1
                return parallelism == action.parallelism
            except StateDoesNotFit as error:
                if parallelism == self._parallelism:
                    cluster.probes.report("restore", f"the job cannot go on from its savepoint: {error}")
                    return False
                self._keep(parallelism, "; ".join(error.problems))
                parallelism = self._parallelism
            except Exception as error:  # noqa: BLE001  (whatever is wrong with the savepoint just now)
                cluster.trace.add("the user", "refused", action, f"{type(error).__name__}: {error}")
                if cluster.now_ms > self._quiet_ms + _AGAIN_MS:
                    cluster.probes.report("restore", f"the job cannot go on: {type(error).__name__}: {error}")
                    return False
                cluster.run_for(_AGAIN_MS)

    def _is_refused(self) -> bool:
        """Wait until the job's first tasks run, or its source says that it cannot."""
        job = self._job
        self._cluster.run_until(
            lambda: job in self._refusals or job.status.is_terminal or job.status.value == "running", self._patience_ms
        )
        self._cluster.run_for(0.0 if job.status.is_terminal else _AGAIN_MS)
        return job in self._refusals

    def _keep(self, parallelism: int, why: str) -> None:
        told = f"parallelism {parallelism} was refused, so the job kept the one that it had: {why}"
        if told not in self.kept:
            self.kept.append(told)

    def _wait_for_the_end_of(self, job: JobHandle) -> None:
        self._cluster.run_until(lambda: job.status.is_terminal, self._patience_ms)
