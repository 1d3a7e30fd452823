"""Faults, as data: what goes wrong, and when. Times are virtual milliseconds from the start of the history.

A process is named by who it is: the index of a TaskManager (whichever process has that place at the time), or
JOB_MANAGER. A fault that finds nothing to happen to (no such process just then) does not happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Who: TypeAlias = int
UserCall: TypeAlias = Literal["open", "process_batch", "on_checkpoint", "commit"]
SyncedFolder: TypeAlias = Literal["checkpoint", "savepoint", "output", "hidden output", "above"]
"""A folder whose names are made to last: of a checkpoint, of savepoints, of committed or of hidden output, or one that
lies above these.
"""

PowerMoment: TypeAlias = Literal[SyncedFolder, "metadata"]
"""After the sync of such a folder, or once a checkpoint's metadata file is written, whatever was synced for it."""

CheckpointMoment: TypeAlias = Literal["barrier", "completion", "notice"]
"""An operator has had its barrier; the checkpoint is complete, and nobody knows; an operator has had the notice."""

JOB_MANAGER: Who = -1


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong at one moment."""

    at_ms: float

    @property
    def until_ms(self) -> float:
        """From when on the world is as before, but for the consequences."""
        return self.at_ms


@dataclass(frozen=True, slots=True)
class LastingFault(Fault):
    """Something that is wrong for a while."""

    for_ms: float

    @property
    def until_ms(self) -> float:
        return self.at_ms + self.for_ms


@dataclass(frozen=True, slots=True)
class KillProcess(Fault):
    """SIGKILL."""

    who: Who


@dataclass(frozen=True, slots=True)
class KillAtOperation(Fault):
    """From `at_ms` the process does `operations` sends and disk operations, and dies in the middle of the last one."""

    who: Who
    operations: int


@dataclass(frozen=True, slots=True)
class KillAtCheckpoint(Fault):
    """From `at_ms` on, a process dies at the next such moment of a checkpoint that it takes part in.

    `which`: of the operators that have had the barrier, or the notice, counted round and round; its process dies.
    """

    moment: CheckpointMoment = "completion"
    which: int = 0


@dataclass(frozen=True, slots=True)
class FreezeProcess(LastingFault):
    """SIGSTOP, and later SIGCONT: it may be taken for dead meanwhile, and come back as a zombie.

    With `operations` it freezes in the middle of the send or disk operation that comes as this number from `at_ms` on.
    """

    who: Who
    operations: int = 0


@dataclass(frozen=True, slots=True)
class SlowProcess(LastingFault):
    """Each step of its tasks takes so much longer, so that what is sent to them piles up."""

    who: Who
    extra_ms: float


@dataclass(frozen=True, slots=True)
class CutConnections(Fault):
    """All connections between two processes break at once; new ones can be made."""

    one: Who
    other: Who


@dataclass(frozen=True, slots=True)
class Partition(LastingFault):
    """Nothing gets from one process to another; nor back, unless it is `one_way` (half-open)."""

    one: Who
    other: Who
    one_way: bool = False


@dataclass(frozen=True, slots=True)
class SlowLink(LastingFault):
    """From one process to another everything takes longer, and large frames longer still."""

    one: Who
    other: Who
    extra_latency_ms: float
    bytes_per_ms: float = 1_000.0


@dataclass(frozen=True, slots=True)
class FailingStorage(LastingFault):
    """Each disk operation fails with this probability; a write may get through in part before it does."""

    probability: float = 0.5


@dataclass(frozen=True, slots=True)
class SlowStorage(LastingFault):
    """Whatever reads or writes files takes so much longer."""

    extra_ms: float


@dataclass(frozen=True, slots=True)
class SlowFiles(LastingFault):
    """Whatever one process reads or writes of files takes so much longer."""

    who: Who
    extra_ms: float


@dataclass(frozen=True, slots=True)
class FullDisk(LastingFault):
    """The disk takes nothing more."""


@dataclass(frozen=True, slots=True)
class RottenFile(Fault):
    """A file of the newest checkpoint turns out to be cut off: its last bytes are lost, and the write gave no error.

    With `flips` it is as long as it should be, and one bit of it is wrong. `which`: of the files with state, counted
    round and round.
    """

    flips: bool = False
    which: int = 0


@dataclass(frozen=True, slots=True)
class PowerFailure(Fault):
    """All TaskManagers die, and files that were not synced are gone or torn.

    With `after_sync` it comes right after the next sync of such a folder, before anything else is done to the disk by
    whoever had it synced. The JobManager, which survives, comes to the end of what it writes. After "metadata" it comes
    when the next metadata file is written, whether anything was synced for it or not.
    """

    after_sync: PowerMoment | None = None


@dataclass(frozen=True, slots=True)
class SkewClock(Fault):
    """A process's wall clock jumps."""

    who: Who
    by_ms: int


@dataclass(frozen=True, slots=True)
class FailingOperator(Fault):
    """User code raises, in whichever task makes the next call of this kind."""

    call: UserCall = "process_batch"


FAULTS: tuple[type[Fault], ...] = (
    KillProcess,
    KillAtOperation,
    FreezeProcess,
    CutConnections,
    Partition,
    SlowLink,
    FailingStorage,
    SlowStorage,
    FullDisk,
    RottenFile,
    PowerFailure,
    SkewClock,
    FailingOperator,
    SlowProcess,
    SlowFiles,
    KillAtCheckpoint,
)
"""Every kind."""
