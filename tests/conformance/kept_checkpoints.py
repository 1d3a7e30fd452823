"""Completed checkpoints and ids that outlive their JobManager, by the shared storage of high availability.

An entry of Flink's ZooKeeper is a pointer in the job's record here. Shared storage stands for ZooKeeper, too: both
pass the same contract (tests/contracts/high_availability.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from understudy.messages import CheckpointConfig, CheckpointRetention, JobId, JobStatus
from understudy.runtime.high_availability.job_record import JobRecord, read_record
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.state import CheckpointStorage

from ..contracts.high_availability import numbers, stored, submitted
from ..runtime.high_availability.clusters import Candidates, config
from .scenario import Difference, Skipped, UnknownWord, Words, compare, compare_all

NO_SHARING = "two stores that share an entry: whoever recovers deposes the JobManager before, whose writes are refused"


class Kept:
    """One job on JobManagers that follow each other."""

    def __init__(self, folder: Path, retain: int) -> None:
        self._storage = CheckpointStorage(str(folder / "checkpoints"))
        self._candidates = Candidates(config(folder, timeout_ms=600_000))
        wanted = submitted()
        config_of_job = CheckpointConfig(self._storage.url, retained=retain, retention=CheckpointRetention.NEVER)
        self._submitted = replace(wanted, graph=replace(wanted.graph, checkpoints=config_of_job))
        self.discarded: list[int] = []
        self.recover()

    def close(self) -> None:
        self._candidates.close()

    def add(self, number: int) -> None:
        checkpoint = stored(self._storage, number)
        self._job.pointers.add(checkpoint)
        for dropped in self._job.checkpoints.add(checkpoint):
            self._job.pointers.remove(dropped.metadata_path)
            self._storage.delete(dropped.metadata_path)
            self.discarded.append(dropped.checkpoint_id)

    def recover(self) -> None:
        self._lead()
        self._job = self._jobs.add_job(self._submitted)

    def shut_down(self, status: str) -> None:
        """The JobManager ends, with its job or without it."""
        if status == "SUSPENDED":
            self._job.checkpoints.shutdown(JobStatus.RUNNING)
        else:
            self.discarded += numbers(self._job.checkpoints.shutdown(JobStatus[status]))
            self._jobs.remove_job(JobId("job"), JobStatus[status])
        self._lead()

    def record(self) -> JobRecord | None:
        """What a successor would find."""
        (data,) = self._candidates.leaders[-1].read().values() or (None,)
        return None if data is None else read_record(data, "the record")

    def contents(self) -> Words:
        retained, record = numbers(self._job.checkpoints.retained()), self.record()
        return {
            "retained": retained,
            "latest": retained[-1] if retained else None,
            "entries": 0 if record is None else len(record.checkpoints),
            "discarded": list(self.discarded),
        }

    def _lead(self) -> None:
        for leader in self._candidates.leaders:
            leader.resign()
        self._jobs: KeptJobs = self._candidates.kept()


@contextmanager
def kept(retain: int) -> Iterator[Kept]:
    with TemporaryDirectory() as folder:
        job = Kept(Path(folder), retain)
        try:
            yield job
        finally:
            job.close()


def play_store(words: Words) -> Iterator[Difference]:
    if any("store" in step for step in words["steps"]):
        raise Skipped(NO_SHARING)
    with kept(words["retain"]) as job:
        for number, (step, expected) in enumerate(
            zip_longest(words["steps"], words.get("expect_after", []), fillvalue={})
        ):
            match step:
                case {"add": checkpoint}:
                    job.add(checkpoint)
                case {"recover": True}:
                    job.recover()
                case {"shutdown": status}:
                    job.shut_down(status)
                case _:
                    raise UnknownWord(f"found the step {step}; wanted add, recover or shutdown")
            facts = {word: fact for word, fact in expected.items() if word != "locks"}  # epochs fence here
            yield from compare_all(f"step {number}", facts, job.contents())
        yield from compare_all("at the end", words.get("expect", {}), job.contents())


def play_counter(words: Words) -> Iterator[Difference]:
    """Ids are reserved in the job's record."""
    for word, expected in words["expect"].items():
        with kept(1) as job:
            match word.partition("after_")[2]:
                case "start":
                    found = "node gone" if job.record() is None else "node exists"
                case "shutdown_SUSPENDED" | "shutdown_FINISHED" | "shutdown_FAILED" | "shutdown_CANCELED" as ending:
                    job.shut_down(ending.removeprefix("shutdown_"))
                    found = "node gone" if job.record() is None else "node still there"
                case _:
                    raise UnknownWord(f"found {word!r}; wanted after_start or after_shutdown_...")
            yield from compare(word, expected, found)
