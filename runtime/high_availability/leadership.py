"""Leadership: one term of one leader, the small records that it alone may write, and how one comes to it.

Flink: LeaderElectionService, LeaderContender.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from ...messages import LeaderSessionId


class Leadership(Protocol):
    """From winning an election until `resign`, or until it is lost; it never comes back. Safe from any thread.

    It is lost, at the latest, some time before anybody else can win: a leader that cannot be sure leads no more. To be
    cut off for a moment is not to be deposed: as long as nobody else can win, nothing happens.
    """

    @property
    def session(self) -> LeaderSessionId: ...

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can lead now, going by what was heard and by the clock."""
        ...

    def publish(self, address: str) -> None:
        """Let others find this leader at tcp://host:port. Blocks. Raises LostLeadership."""
        ...

    def on_lost(self, callback: Callable[[str], None]) -> None:
        """Call back once, with why, when it is lost, on any thread; at once if it is. Not after `resign`."""
        ...

    def resign(self) -> None:
        """Somebody else may lead at once: nothing of this leader runs any more. May be repeated."""
        ...

    # -- records

    def read(self) -> Mapping[str, bytes]:
        """All records, as earlier leaders have left them and this one has written them. Blocks. Raises LostLeadership,
        NotReachable.
        """
        ...

    def write(self, name: str, data: bytes) -> None:
        """Make or replace a record as a whole. It is there when this returns, and lasts. Blocks, and goes on trying
        while nobody answers. Raises LostLeadership: then no later leader sees it, or it was there before that one read.
        """
        ...

    def remove(self, name: str) -> None:
        """The same for its removal. One that is not there is fine."""
        ...

    def place(self, name: str) -> str:
        """Where that record is, for errors."""
        ...


class Election(Protocol):
    """One candidate. It may win several terms, one after the other."""

    def campaign(self, withdraw: threading.Event, known: Callable[[], None] = ...) -> Leadership | None:
        """Wait until this process leads; None once `withdraw` is set. Blocks. `known` is called, on this thread, with
        each leader of the same cluster that it waits for. Raises NotReachable when nobody answers
        at the beginning, NotOurs, and AnotherCluster where the leader that it waits for is of one.
        """
        ...
