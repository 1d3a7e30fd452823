"""Leader: where the JobManager that leads is, and how others learn it. Flink: LeaderRetrievalService.

How one becomes the leader is not at home here (`leadership.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ...messages import LeaderSessionId


@dataclass(frozen=True, slots=True)
class Leader:
    """A JobManager that leads."""

    address: str
    """tcp://host:port of its actor system; its actor there is called `job-manager`."""
    session: LeaderSessionId
    """No other leader has had it."""
    key_id: str = field(default="", compare=False)
    """Of the key of its cluster (`CurveKeys.key_id`); empty where it has not said so."""


LeaderChanged: TypeAlias = Callable[[Leader | None], None]


class LeaderRetrieval(Protocol):
    """One listener of one cluster: a TaskManager, a client, the command line. Open when it is handed out."""

    def leader(self) -> Leader | None:
        """Who leads, as far as was heard; None while nobody does, or nobody can tell. Does not block.

        Whoever it was may be deposed by now: its words carry its session, and are dropped.
        """
        ...

    def on_change(self, callback: LeaderChanged) -> None:
        """Call back with what is known now, and with every change from then on until `close`: one after the other, on
        any thread. The callback must not block. One that leads no more is followed by None, or at once by the next.
        """
        ...

    def close(self) -> None:
        """Nobody is called back any more when this returns. May be repeated."""
        ...


class FixedLeader:
    """The one JobManager of a cluster without a successor."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def leader(self) -> Leader:
        return self._leader

    def on_change(self, callback: LeaderChanged) -> None:
        callback(self._leader)

    def close(self) -> None:
        """There is nothing to close."""
