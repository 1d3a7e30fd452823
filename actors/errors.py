"""What can go wrong while acting.

ActorError
├── UserCodeError           a user's function raised; the cause is its exception
├── ChannelBroken           a gap, a duplicate or a lost peer on a channel
├── InvalidJobGraph         a graph that cannot run, with the vertex or operator that is wrong
├── NoResourceAvailable     too few slots; says how many are needed and offered
├── UnknownJob              no job of this id was submitted here
└── IllegalTransition       an execution or job was told to go where its table does not lead
"""

from __future__ import annotations


class ActorError(Exception):
    """Base of all errors of actors/."""


class UserCodeError(ActorError):
    """User code raised; `__cause__` is what it raised. `record_position` is None outside of a record function."""

    def __init__(self, operator_name: str, record_position: int | None) -> None:
        where = "" if record_position is None else f" at record {record_position} of this attempt"
        super().__init__(f"operator {operator_name!r} raised{where}")
        self.operator_name = operator_name
        self.record_position = record_position


class ChannelBroken(ActorError):
    """A channel lost data, or would have: the attempt fails and is restored from the last checkpoint."""


class InvalidJobGraph(ActorError, ValueError):
    """The job cannot run as it stands; the message names the operator and what was wanted."""


class NoResourceAvailable(ActorError):
    """The cluster has too few slots for the job."""


class UnknownJob(ActorError, LookupError):
    """The JobManager knows no job of this id; the text lists those that it knows."""


class IllegalTransition(ActorError):
    """A state machine was told to do what its transition table does not allow."""
