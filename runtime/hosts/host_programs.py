"""HostPrograms: the stored code of jobs on hosts, for as long as they may be started again. JobPrograms of a JobManager
that stands alone, which copies code and never looks into it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace

from ...actors.errors import NotRestartable
from ...actors.job_manager.job_programs import KEPT_PROGRAMS
from ...messages import JobSubmitted, ProgramFile, SubmitJob
from .errors import ProgramRefused
from .programs import Programs

log = logging.getLogger(__name__)


class HostPrograms:
    """Those of one term. `programs`: where they are."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._lock = threading.Lock()
        self._ended: deque[ProgramFile] = deque()
        self._deleted: set[ProgramFile] = set()

    def refusal(self, before: SubmitJob) -> str:
        if before.program is None:
            return "it was submitted without its code: use `understudy submit`, or StandaloneCluster"
        if before.program in self._deleted:
            return (
                f"its code is not kept any more, but for the last {KEPT_PROGRAMS} jobs that have ended: `understudy "
                "submit` it again, with --from-savepoint"
            )
        return ""

    def again(self, before: SubmitJob, wanted: SubmitJob) -> SubmitJob:
        if why := self.refusal(before):
            raise NotRestartable(why)
        assert before.program is not None, "that is a refusal"
        try:
            shipped = self._programs.load(before.graph.job_id, before.program)
        except ProgramRefused as error:
            raise NotRestartable(str(error)) from error
        return replace(wanted, program=self._programs.store(wanted.graph.job_id, shipped))

    def started(self, before: SubmitJob, submitted: JobSubmitted) -> None:
        """Its handles are elsewhere."""

    def over(self, ended: SubmitJob) -> None:
        stored = ended.program
        with self._lock:
            if stored is None or stored in self._ended or stored in self._deleted:
                return
            self._ended.append(stored)
            oldest = self._ended.popleft() if len(self._ended) > KEPT_PROGRAMS else None
        if oldest is not None:
            self._delete(oldest)

    def close(self) -> None:
        """This JobManager ends: nobody starts an ended job again."""
        with self._lock:
            ended, self._ended = self._ended, deque()
        for stored in ended:
            self._delete(stored)

    def _delete(self, stored: ProgramFile) -> None:
        self._deleted.add(stored)
        try:
            self._programs.delete(stored)
        except OSError as error:
            log.warning("the code of a job that is over could not be deleted: %s", error)
