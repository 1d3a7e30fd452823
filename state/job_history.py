"""JobHistory: jobs that have ended, in a folder: one sealed file each, which is read after any restart.

    <root>/<wall time of the end, in ms>-<job id>.job

Files never change, and the name says how old one is, so a reader that has read one need not read it again. Only the
newest ones are kept. All of it blocks. Safe from any thread. Flink: FsJobArchivist, HistoryServerArchiveFetcher.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from ..messages import EndedJob, MalformedMessage, decode, encode
from .errors import StateError
from .storage import CheckpointStorage

log = logging.getLogger(__name__)

JOBS_KEPT = 1_000
_SUFFIX = ".job"


class JobHistory:
    """`url`: a local path, or any URL that fsspec knows."""

    def __init__(
        self,
        url: str,
        jobs_kept: int = JOBS_KEPT,
        open_storage: Callable[[str], CheckpointStorage] = CheckpointStorage,
    ) -> None:
        self.url = url
        self._jobs_kept = jobs_kept
        self._storage = open_storage(url)
        self._read: dict[str, EndedJob] = {}
        self._spoilt: set[str] = set()

    def check(self) -> None:
        """Raises UnwritableRoot when nothing can be kept there."""
        self._storage.check()

    def keep(self, job: EndedJob) -> None:
        """Store it, in place of what there was of the same end; the oldest go when there are too many."""
        summary = job.view.summary
        self._storage.write_sealed(f"{summary.ended_ms:015}-{quote(summary.job_id, safe='')}{_SUFFIX}", encode(job))
        for path in self._files()[: -self._jobs_kept]:
            self._storage.delete(path)

    def jobs(self) -> list[EndedJob]:
        """All that can be read, newest end first; one that cannot is logged once, and left out."""
        known, found = self._read, dict[str, EndedJob]()
        for path in reversed(self._files()):
            job = known.get(path) or self._job_at(path)
            if job is not None:
                found[path] = job
        self._read = found  # in one step: several threads may read at once
        return list(found.values())

    def _job_at(self, path: str) -> EndedJob | None:
        if path in self._spoilt:
            return None
        try:
            job = decode(self._storage.read_sealed(path))
            if not isinstance(job, EndedJob):
                raise MalformedMessage(f"wanted an EndedJob, found {type(job).__name__}")
        except (StateError, MalformedMessage, OSError) as error:
            self._spoilt.add(path)
            log.warning("%s in the history of jobs in %s cannot be read: %s", path, self.url, error)
            return None
        return job

    def _files(self) -> list[str]:
        """Oldest end first."""
        with suppress(FileNotFoundError):
            return [path for path in self._storage.list_files() if path.endswith(_SUFFIX) and "/" not in path]
        return []
