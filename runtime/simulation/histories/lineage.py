"""Lineage: the jobs of one history, each but the first restored from a savepoint of one before it; and what all of them
together have committed.

A job that was stopped or cancelled with its savepoint has committed what the savepoint covers, and counts as a whole.
One that went on after its savepoint, until another took its place, counts up to there; what others had built on what
came later counts no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....messages import CheckpointId, JobId
from ...clusters.job_handle import JobHandle
from ...connectors import CollectSink, read_collected


@dataclass(slots=True)
class Generation:
    """One job. `until`: the last checkpoint whose output counts; None for all of it."""

    job: JobHandle
    until: CheckpointId | None = None


class Lineage:
    """`sink`: the name of each job's CollectSink."""

    def __init__(self, sink: str) -> None:
        self._sink = sink
        self._generations: list[Generation] = []
        self.jobs: list[JobHandle] = []
        """All that were ever submitted, those too that do not count any more."""

    @property
    def latest(self) -> JobHandle:
        return self._generations[-1].job

    def begin(self, job: JobHandle, origin: JobId | None = None, until: CheckpointId | None = None) -> None:
        """A job is there: the first one, or one that goes on where `origin` had its savepoint; `until` as above."""
        while self._generations and self._generations[-1].job.job_id != origin:
            self._generations.pop()
        assert bool(self._generations) == (origin is not None), f"no job {origin} in this lineage"
        if self._generations:
            self._generations[-1].until = until
        self._generations.append(Generation(job))
        self.jobs.append(job)

    def has(self, job_id: JobId) -> bool:
        """Whether what this job commits counts."""
        return any(each.job.job_id == job_id for each in self._generations)

    def committed(self) -> list[Any]:
        """All records that count. Raises UnreadableInput."""
        return [record for each in self._generations for record in self._committed_by(each)]

    def committed_by_the_latest(self) -> list[Any]:
        """What the latest job has committed of its own. Raises UnreadableInput."""
        return self._committed_by(self._generations[-1])

    def outputs(self) -> list[tuple[str, CheckpointId | None]]:
        """Where each job that counts commits to, and the last checkpoint whose output counts."""
        return [(self._directory_of(each), each.until) for each in self._generations]

    def _committed_by(self, generation: Generation) -> list[Any]:
        return read_collected(self._directory_of(generation), until=generation.until)

    def _directory_of(self, generation: Generation) -> str:
        sink = generation.job._results.sink(self._sink)
        assert isinstance(sink, CollectSink)
        return sink.path
