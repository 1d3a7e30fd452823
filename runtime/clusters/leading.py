"""Leading: whether and when a cluster's JobManager leads, what it goes on with, and who hears when that is over.

A cluster whose `recovery.mode` is standalone leads as long as it lives. In the other modes `start` waits until this
process leads: another one may lead now, and this one is its understudy.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from ...messages import JobGraph, JobId, LeaderSessionId
from ...state.checkpoints.high_availability import HighAvailability, StandaloneHighAvailability
from ...state.errors import AlreadyFinished, CorruptState, LostLeadership, MissingState, StorageError
from ..api.errors import InvalidSetting
from ..high_availability.errors import CannotTakeOver
from ..high_availability.kept_jobs import KeptJobs, TakenOver
from ..high_availability.leadership import Leadership
from ..high_availability.services import HighAvailabilityServices
from ..high_availability.settings import CLUSTER_ID, RECOVERY_MODE, HighAvailabilitySettings, RecoveryMode
from ..high_availability.submissions import StoredProgram
from ..system import CurveKeys

log = logging.getLogger("understudy.job")

T = TypeVar("T")
AGAIN_SECONDS = 0.5


class Leading(Protocol):
    """Of one cluster."""

    keys: CurveKeys

    def begin(self, known: Callable[[], None] = ...) -> None:
        """Wait until this process leads. Blocks. `known` is called when another leader of this cluster is
        seen. Raises NotReachable, NotOurs, AnotherCluster, and RuntimeError once withdrawn.
        """
        ...

    def high_availability(self, new_session: Callable[[], LeaderSessionId]) -> HighAvailability: ...

    def publish(self, address: str, lost: Callable[[str], None]) -> None:
        """The JobManager is there: others may find it. `lost` is called, on any thread, when it leads no more."""
        ...

    def inherited(self, start: Callable[[TakenOver], None]) -> None:
        """Start what an earlier leader has left. Blocks. A job that cannot start is logged, and `job_of` raises why."""
        ...

    def job_of(self, name: str) -> JobId | None:
        """The job of this name that an earlier leader has left, if there is one that nobody has asked for yet. Raises
        CannotTakeOver when it cannot go on.
        """
        ...

    def keep(self, graph: JobGraph, program: StoredProgram, work_dir: str) -> None:
        """This job is about to be submitted. Raises InvalidSetting when a successor could not go on with it."""
        ...

    def end(self) -> None:
        """Somebody else may lead. May be repeated, also while `begin` waits."""
        ...


class Alone:
    """There is no successor."""

    def __init__(self) -> None:
        self.keys = CurveKeys.generate()

    def begin(self, known: Callable[[], None] = lambda: None) -> None:
        """It leads."""

    def high_availability(self, new_session: Callable[[], LeaderSessionId]) -> HighAvailability:
        return StandaloneHighAvailability(new_session())

    def publish(self, address: str, lost: Callable[[str], None]) -> None:
        """Nobody looks for it."""

    def inherited(self, start: Callable[[TakenOver], None]) -> None:
        """There was nobody."""

    def job_of(self, name: str) -> JobId | None:
        return None

    def keep(self, graph: JobGraph, program: StoredProgram, work_dir: str) -> None:
        """For nobody."""

    def end(self) -> None:
        """Nobody follows."""


class OneOfSeveral:
    """Several processes want to lead the cluster. Raises InsecureKeyFile, and OSError, for an unusable key file."""

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        self._settings = settings
        self._services = HighAvailabilityServices(settings)
        self.keys = self._services.keys
        self._withdrawn = threading.Event()
        self._leadership: Leadership | None = None
        self._kept: KeptJobs | None = None
        self._left: dict[JobId, str] = {}
        self._refused: dict[str, CannotTakeOver] = {}

    def begin(self, known: Callable[[], None] = lambda: None) -> None:
        log.info("cluster %r: waiting to lead", self._settings.cluster_id)
        while self._kept is None:
            leadership = self._services.election().campaign(self._withdrawn, known)
            if leadership is None:
                raise RuntimeError(f"cluster {self._settings.cluster_id!r} was closed before it came to lead")
            self._leadership = leadership
            try:
                self._kept = self._patiently(lambda won=leadership: self._services.kept_jobs(won))  # type: ignore[misc]
            except BaseException as error:
                leadership.resign()
                if not isinstance(error, LostLeadership):
                    raise
        log.info("cluster %r: leader session %s has begun", self._settings.cluster_id, self._kept.session)

    def high_availability(self, new_session: Callable[[], LeaderSessionId]) -> HighAvailability:
        return self._jobs

    def publish(self, address: str, lost: Callable[[str], None]) -> None:
        assert self._leadership is not None, "it leads"
        self._leadership.publish(address)
        self._leadership.on_lost(lost)

    def inherited(self, start: Callable[[TakenOver], None]) -> None:
        self._patiently(self._jobs.remove_leftovers)
        for kept in self._patiently(lambda: list(self._jobs.kept())):
            if isinstance(kept, CannotTakeOver):
                self._refuse(kept.job, kept)
                continue
            graph = kept.submitted.graph
            try:
                self._patiently(lambda taken=kept: start(taken))  # type: ignore[misc]
            except LostLeadership:
                raise
            except AlreadyFinished as error:
                log.info("%s", error)
            except Exception as error:  # noqa: BLE001 - supervision boundary: one job that cannot go on stops no other
                why = f"job {graph.name!r} ({graph.job_id}) of an earlier leader cannot go on: {error}"
                self._refuse(graph.name, CannotTakeOver(graph.name, why))
            else:
                self._left[graph.job_id] = graph.name

    def job_of(self, name: str) -> JobId | None:
        if name in self._refused:
            raise self._refused[name]
        job_id = next((job_id for job_id, left in self._left.items() if left == name), None)
        if job_id is not None:
            del self._left[job_id]
        return job_id

    def keep(self, graph: JobGraph, program: StoredProgram, work_dir: str) -> None:
        if graph.checkpoints.directory.startswith(f"{work_dir}/"):
            raise InvalidSetting(
                f"{RECOVERY_MODE} is {self._settings.mode.value}, and job {graph.name!r} has no checkpoint_dir that "
                "outlives its process: set one on the StreamEnvironment, in a place that every JobManager reaches"
            )
        self._jobs.offer(graph.job_id, program)

    def end(self) -> None:
        self._withdrawn.set()
        if self._leadership is not None:
            self._leadership.resign()

    @property
    def _jobs(self) -> KeptJobs:
        assert self._kept is not None, f"cluster {self._settings.cluster_id!r} of {CLUSTER_ID} does not lead"
        return self._kept

    def _refuse(self, name: str, error: CannotTakeOver) -> None:
        self._refused[name] = error
        log.error("%s", error)

    def _patiently(self, work: Callable[[], T]) -> T:
        """Storage that does not answer is asked again, as long as this process leads."""
        assert self._leadership is not None, "it leads"
        while True:
            try:
                return work()
            except (OSError, StorageError) as error:
                if isinstance(error, CorruptState | MissingState) or not self._leadership.is_sure:
                    raise
                log.warning("cluster %r: cannot go on yet, and tries again: %s", self._settings.cluster_id, error)
                if self._withdrawn.wait(AGAIN_SECONDS):
                    raise


def leading(settings: HighAvailabilitySettings) -> Leading:
    return Alone() if settings.mode is RecoveryMode.STANDALONE else OneOfSeveral(settings)
