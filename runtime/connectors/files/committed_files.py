"""Committed files: how a FileSink's visible files are called, and whose output one is.

    part-<operator>-<subtask>-<checkpoint>-<job>-<attempt number>-<attempt><extension>

Several jobs may write to one folder, so a reader that wants the output of one goes by the names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ....messages import CheckpointId, JobId, OperatorId, Predecessor

_NAME = re.compile(r"part-([^-]*)-(\d+)-(\d+)-([0-9a-f]{16})-")


def fingerprint(text: str) -> str:
    """Sixteen characters that stand for an id of any length."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def slug(text: str) -> str:
    """Letters and digits only, so that a dash separates the parts of a name."""
    return re.sub(r"[^A-Za-z0-9]", "", text)


def checkpoint_of(name: str) -> CheckpointId:
    """The checkpoint that covers a visible file, by its name."""
    return CheckpointId(int(name.split("-")[3]))


def others_than(job_id: JobId, names: Iterable[str], predecessors: Iterable[Predecessor] = ()) -> int:
    """How many of these visible files are of other jobs; those of jobs that this one continues are not, up to where it
    took over.
    """
    until = {fingerprint(each.job_id): each.checkpoint_id for each in predecessors}
    found = (parts for name in names if (parts := _NAME.match(name)) is not None and parts[4] != fingerprint(job_id))
    return sum(int(parts[3]) > until.get(parts[4], -1) for parts in found)


@dataclass(frozen=True, slots=True)
class OutputOf:
    """One sink of one job: its own files, and of the jobs that this one continues those up to where it took over."""

    job_id: JobId
    operator_id: OperatorId
    predecessors: tuple[Predecessor, ...] = ()

    def among(self, names: Iterable[str]) -> list[str]:
        """The names of its files, in order."""
        until = {fingerprint(each.job_id): each.checkpoint_id for each in self.predecessors}
        own = fingerprint(self.job_id)
        return sorted(name for name in names if self._has(name, own, until))

    def _has(self, name: str, own: str, until: dict[str, CheckpointId]) -> bool:
        parts = _NAME.match(name)
        if parts is None or parts[1] != slug(self.operator_id):
            return False
        return parts[4] == own or int(parts[3]) <= until.get(parts[4], -1)
