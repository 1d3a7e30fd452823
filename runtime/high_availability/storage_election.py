"""StorageElection: who makes the next epoch's file leads; a leader that stays silent is followed by the next.

No clocks are compared: a candidate waits until the newest epoch's file has not changed for the session timeout, as it
saw it; a leader is sure for two thirds of that after its last word.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import uuid4

from ...messages import LeaderSessionId
from ...state import CheckpointStorage
from ...state.errors import LostLeadership, StorageError
from .ahead import Ahead
from .errors import NotOurs, NotReachable
from .leader import Leader
from .listeners import HeardLeader, Listeners
from .settings import HighAvailabilitySettings
from .storage_epochs import LOST, Epoch, EpochTerm, StorageEpochs
from .term import LOOKS, Term, TermLeadership, elapsed_s

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 0.1
_SLOWEST_SECONDS = 1.0
_LAST_LOOK_SECONDS = 2.0
"""How long a look at a storage that does not answer is waited for at the end; its thread is left to itself then."""


def _pause_seconds(settings: HighAvailabilitySettings) -> float:
    """Between two looks at the newest epoch."""
    return min(_SLOWEST_SECONDS, settings.session_timeout_ms / 1000 / LOOKS)


def leader_of(epoch: Epoch) -> Leader:
    """With an empty address, as long as it has published none."""
    return Leader(epoch.term.address, epoch.term.leader_session_id, epoch.term.key_id)


class StorageElection:
    """One process's candidacy. `storage`: the cluster's own folder."""

    def __init__(
        self,
        settings: HighAvailabilitySettings,
        storage: CheckpointStorage,
        now_s: Callable[[], float] = elapsed_s,
        *,
        key_id: str = "",
    ) -> None:
        self._settings = settings
        self._key_id = key_id
        self._epochs = StorageEpochs(storage)
        self._now_s = now_s

    def campaign(self, withdraw: threading.Event, known: Callable[[], None] = lambda: None) -> StorageLeadership | None:
        self._epochs.storage.check()
        ahead = Ahead(self._settings, self._key_id, self._epochs.storage.location(), known)
        seen: Epoch | None = None
        said = ""
        since_s = self._now_s()
        while not withdraw.is_set():
            try:
                newest = self._epochs.newest()
                if newest is None and seen is not None:  # somebody has removed all of it: its leader may live
                    newest = Epoch(seen.number, LOST)
                if newest != seen:
                    if newest is not None and not newest.term.is_over:
                        ahead.seen(leader_of(newest), lives=seen is not None and seen.number == newest.number)
                    seen, since_s, said = newest, self._now_s(), ""
                if self._is_free(seen, since_s) and (won := self._claim(1 if seen is None else seen.number + 1)):
                    return won
            except (OSError, StorageError) as error:
                kind = f"{type(error).__name__} {getattr(error, 'errno', None)}"  # its text may count free bytes
                if kind != said:
                    said = kind
                    log.warning("a candidate of cluster %s waits for storage: %s", self._settings.cluster_id, error)
                since_s = self._now_s()  # what was not seen may have changed
            except NotOurs as error:
                if seen is None:  # it may be another system's folder
                    raise
                if str(error) != said:
                    said = str(error)
                    log.warning("a candidate of cluster %s waits: %s", self._settings.cluster_id, error)
                since_s = self._now_s()
            withdraw.wait(_pause_seconds(self._settings))
        return None

    def _is_free(self, newest: Epoch | None, since_s: float) -> bool:
        silent_s = self._now_s() - since_s
        return newest is None or newest.term.is_over or silent_s >= self._settings.session_timeout_ms / 1000

    def _claim(self, number: int) -> StorageLeadership | None:
        sent_s = self._now_s()
        term = EpochTerm(LeaderSessionId(f"{number}-{uuid4().hex[:12]}"), key_id=self._key_id)
        if not self._epochs.claim(number, term):
            return None
        leadership = StorageLeadership(self._epochs, self._settings, Epoch(number, term), sent_s, self._now_s)
        leadership.begin()
        return leadership


class StorageLeadership(TermLeadership):
    """From `campaign`."""

    def __init__(
        self,
        epochs: StorageEpochs,
        settings: HighAvailabilitySettings,
        epoch: Epoch,
        since_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._epochs = epochs
        self._number = epoch.number
        self._said = epoch.term
        self._lock = threading.Lock()
        self._versions: dict[str, int] = {}
        self._now_s = now_s
        session = epoch.term.leader_session_id
        self._term = Term(session, settings.session_timeout_ms / 1000, since_s, now_s, self._look)

    def begin(self) -> None:
        self._term.begin()
        self._surely(lambda: self._epochs.inherit(self._number))

    def publish(self, address: str) -> None:
        self._surely(lambda: self._say(address=address))

    def resign(self) -> None:
        if self._term.end():
            with contextlib.suppress(OSError, StorageError, LostLeadership):
                self._say(is_over=True)

    # -- records

    def read(self) -> Mapping[str, bytes]:
        self._term.check()
        try:
            found = self._epochs.records(self._number)
        except (OSError, StorageError) as error:
            raise NotReachable(f"the records of jobs cannot be read: {error}") from error
        self._confirm()
        return found

    def write(self, name: str, data: bytes) -> None:
        with self._lock:
            version = self._versions.get(name, 1) + 1

            def work() -> None:
                self._epochs.write(self._number, name, version, data)
                self._confirm()

            self._surely(work)
            self._versions[name] = version
        with contextlib.suppress(OSError, StorageError):  # the next write removes them
            self._epochs.remove(self._number, name, version)

    def remove(self, name: str) -> None:
        with self._lock:
            below = self._versions.get(name, 1) + 1

            def work() -> None:
                self._epochs.remove(self._number, name, below)
                self._confirm()

            self._surely(work)

    def place(self, name: str) -> str:
        return self._epochs.place(self._number, name)

    # -- inside

    def _surely(self, work: Callable[[], None]) -> None:
        while True:
            self._term.check()
            try:
                work()
            except (OSError, StorageError) as error:
                log.info("leader session %s tries a write again: %s", self.session, error)
                self._term.pause(_AGAIN_SECONDS)
            else:
                return

    def _confirm(self) -> None:
        """What was written counts. Raises LostLeadership."""
        if not self._epochs.is_newest(self._number, self.session):
            self._term.lose("another leader session has begun")
            raise LostLeadership(self.session)

    def _look(self) -> float:
        sent_s = self._now_s()
        self._say()
        return sent_s

    def _say(self, address: str | None = None, *, is_over: bool = False) -> None:
        with self._lock:
            now = self._said
            changed = replace(now, address=now.address if address is None else address, is_over=is_over)
            self._said = replace(changed, beats=now.beats + 1)
            self._confirm()
            self._epochs.say(self._number, self._said)
        self._confirm()


class StorageRetrieval(HeardLeader):
    """One listener, with a thread that looks at the newest epoch. Made from the cluster's own folder.

    A leader that is silent is taken for one until the next has published itself.
    """

    def __init__(self, settings: HighAvailabilitySettings, storage: CheckpointStorage) -> None:
        self._epochs = StorageEpochs(storage)
        self._pause_seconds = _pause_seconds(settings)
        self._listeners = Listeners()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="understudy-leader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listeners.close()
        self._closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_LAST_LOOK_SECONDS)

    def _watch(self) -> None:
        said = ""
        while not self._closed.is_set():
            try:
                newest = self._epochs.newest()
            except Exception as error:  # noqa: BLE001 - whatever a file system raises that does not answer
                if str(error) != said:
                    said = str(error)
                    log.warning(
                        "the leader cannot be looked up in the shared storage, and is looked up again: %s", said
                    )
            else:
                said = ""
                leader = None if newest is None or newest.term.is_over else leader_of(newest)
                self._listeners.heard(leader if leader is not None and leader.address else None)
            self._closed.wait(self._pause_seconds)
