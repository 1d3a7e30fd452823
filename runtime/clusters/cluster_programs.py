"""ClusterPrograms: the code of a cluster's jobs, in the process that has submitted them. JobPrograms of a Cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...actors.errors import NotRestartable
from ...actors.job_manager.job_programs import KEPT_PROGRAMS
from ...messages import JobGraph, JobId, JobSubmitted, SubmitJob
from ..api.translation import Translation
from ..high_availability.submissions import StoredProgram
from .job_handle import STOP_CALL


@dataclass(frozen=True, slots=True)
class SubmittedProgram:
    """`translation` None: an earlier leader's, whose program has not asked for the job again."""

    program: StoredProgram
    translation: Translation | None
    stop_call: str = STOP_CALL
    """How whoever has submitted it stops its job."""

    def of(self, graph: JobGraph) -> SubmittedProgram:
        """The same code, as the program of another job."""
        translation = self.translation
        return replace(self, translation=None if translation is None else replace(translation, graph=graph))


class ClusterPrograms:
    """`prepare` gets the cluster ready to start a job with this graph; `hold` makes the handle of one that was started,
    with how whoever has submitted the program stops it. Both block.
    """

    def __init__(
        self,
        prepare: Callable[[JobGraph, SubmittedProgram], None],
        hold: Callable[[Translation, JobSubmitted, str], object],
    ) -> None:
        self._prepare = prepare
        self._hold = hold
        self._lock = threading.Lock()
        self._known: dict[JobId, SubmittedProgram] = {}
        self._ended: deque[JobId] = deque()

    def keep(self, job_id: JobId, submitted: SubmittedProgram) -> None:
        """This job is about to be submitted."""
        with self._lock:
            self._known[job_id] = submitted

    # -- JobPrograms

    def refusal(self, before: SubmitJob) -> str:
        known = self._known.get(before.graph.job_id)
        if known is None:
            return (
                f"its code is not kept any more, but for the last {KEPT_PROGRAMS} jobs that have ended: submit it "
                "again, with from_savepoint"
            )
        if known.translation is not None and known.translation.queries:
            names = ", ".join(repr(each.source_name) for each in known.translation.queries)
            return (
                f"source {names} reads a query of Spark, which its program has started and which has ended with the "
                "job: submit it again, with from_savepoint"
            )
        return ""

    def again(self, before: SubmitJob, wanted: SubmitJob) -> SubmitJob:
        if why := self.refusal(before):
            raise NotRestartable(why)
        graph = wanted.graph
        submitted = self._known[before.graph.job_id].of(graph)
        self._prepare(graph, submitted)
        self.keep(graph.job_id, submitted)
        return replace(wanted, program=before.program)

    def started(self, before: SubmitJob, submitted: JobSubmitted) -> None:
        known = self._known.get(submitted.job_id)
        if known is not None and known.translation is not None:
            self._hold(known.translation, submitted, known.stop_call)

    def over(self, ended: SubmitJob) -> None:
        with self._lock:
            if ended.graph.job_id not in self._known:
                return  # it was not got ready
            self._ended.append(ended.graph.job_id)
            if len(self._ended) > KEPT_PROGRAMS:
                self._known.pop(self._ended.popleft(), None)
