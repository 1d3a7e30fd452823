"""SavepointRequest, CheckpointRequest: what a client wants. The request itself travels, from its trigger to its answer.

It is made by the SavepointCoordinator, stands in the pending checkpoint that is to be the savepoint, or with the final
checkpoint that a drained job will take, then in StoreMetadata, and comes back in the one AnswerSavepoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Afterwards(Enum):
    """What becomes of the job when its savepoint is there."""

    RUN_ON = "run on"
    CANCEL = "cancel"
    """Nothing newer may be committed by then: no checkpoint begins while the savepoint is pending."""
    STOP = "stop"
    """It is to be the last thing the job does, without its data being ended first: kind STOP. When all data has ended
    already, the final checkpoint serves.
    """
    DRAIN = "drain"
    """Sources end their data, and the final checkpoint is the savepoint."""


@dataclass(frozen=True, slots=True)
class SavepointRequest:
    """One savepoint of one job."""

    token: str
    """Names the promise to the client, and this request among all of its JobManager."""
    directory: str | None = None
    """The folder that the savepoint is to lie in; None: the default."""
    afterwards: Afterwards = Afterwards.RUN_ON


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """One checkpoint of one job, now. It stands with those that wait, then in the pending checkpoint."""

    token: str
    """Names the promise to the client."""
    is_full: bool = False
    """Whether nothing in it may lie in files of earlier checkpoints."""
