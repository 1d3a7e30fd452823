"""JobOrders: orders to a job: take a checkpoint or a savepoint, stop, cancel. A part of the JobHandle."""

from __future__ import annotations

import math
from typing import Any

from ...messages import (
    CancelJob,
    CancelWithSavepoint,
    CheckpointTaken,
    RequestCheckpoint,
    StopJob,
    StopWithSavepoint,
    TriggerSavepoint,
)
from ...state.file_locations import AnyPath
from .asked_job import AskedJob
from .job_client import checkpoint_failure, checkpoint_taken, savepoint_failure, savepoint_path
from .job_future import JobFuture
from .paths import target_folder


class JobOrders(AskedJob):
    """Base of the JobHandle."""

    _is_to_be_canceled = False
    """Whether the user wants it."""
    _is_to_be_stopped = False
    """Whether the user has ordered it, without a savepoint."""
    _last_savepoint: JobFuture[str] | None = None
    """Of the latest order to end the job with one."""

    def cancel(self) -> JobFuture[Any]:
        """End the job at once, without a last checkpoint."""
        self._is_to_be_canceled = True
        return self._future(CancelJob(self.job_id), "the order to cancel")

    def stop(self) -> JobFuture[Any]:
        """End the sources, let the job take its final checkpoint and finish. The future has a result when the order is
        taken: `await job`, or job.wait(), waits for the end.

        A savepoint that was ordered, and has not begun by then, fails with SavepointFailed: wait for its path first.
        """
        self._is_to_be_stopped = True
        return self._future(StopJob(self.job_id), "the order to stop")

    def trigger_checkpoint(self, *, full: bool = False) -> JobFuture[CheckpointTaken]:
        """The future of a checkpoint that is taken now, beside those at the interval: its `checkpoint_id` and `path`;
        it fails with CheckpointRequestFailed.

        It counts as any other: sinks commit, and the job would restore from it. While `max_concurrent_checkpoints` are
        under way it waits for one of them to end; it does not wait for `min_pause_ms`. `full`: nothing in it lies in
        files of earlier checkpoints, as is so in any case without `incremental_checkpoints` and RocksDB. Flink: `flink
        checkpoint`.
        """
        answer = self._client.ask(RequestCheckpoint(self.job_id, full), timeout_ms=math.inf)
        return JobFuture(answer, f"the checkpoint of job {self.name!r}", checkpoint_taken, checkpoint_failure)

    def trigger_savepoint(self, target_directory: AnyPath | None = None) -> JobFuture[str]:
        """The future of the savepoint's path; it fails with SavepointFailed.

        It is kept in the folder `savepoints` of the job's checkpoint_dir, unless the cluster's configuration names
        another one; without both, in the JobManager's memory, and is lost with its process.
        `target_directory`: a folder below that root; None: the root itself.
        """
        return self._savepoint(TriggerSavepoint(self.job_id, target_folder(target_directory)))

    def stop_with_savepoint(self, target_directory: AnyPath | None = None, *, drain: bool = False) -> JobFuture[str]:
        """Take a savepoint that is the last thing the job does, and finish; else as `trigger_savepoint`.

        The job can go on from there later. With `drain` its data is ended first, so that operators emit their final
        results, and nothing comes after it. When the savepoint fails, the job goes on.

        The path comes when the savepoint is stored; sinks commit what it covers after that: `wait()` until the job has
        finished, and then all of it is in `results`.
        """
        self._last_savepoint = self._savepoint(StopWithSavepoint(self.job_id, target_folder(target_directory), drain))
        return self._last_savepoint

    def cancel_with_savepoint(self, target_directory: AnyPath | None = None) -> JobFuture[str]:
        """Take a savepoint, and then cancel the job; when the savepoint fails, the job goes on.

        What sinks had not committed by then, they do when a job is restored from the savepoint.
        """
        self._last_savepoint = self._savepoint(CancelWithSavepoint(self.job_id, target_folder(target_directory)))
        return self._last_savepoint

    def _savepoint(self, request: TriggerSavepoint | StopWithSavepoint | CancelWithSavepoint) -> JobFuture[str]:
        """It has as long as its checkpoint may take: the JobManager answers in any case."""
        answer = self._client.ask(request, timeout_ms=math.inf)
        return JobFuture(answer, f"the savepoint of job {self.name!r}", savepoint_path, savepoint_failure)
