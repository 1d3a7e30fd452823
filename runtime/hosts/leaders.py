"""How the leader of a cluster is found, as its settings say: at a fixed address, or by ZooKeeper or shared storage."""

from __future__ import annotations

import logging
import threading

from ...messages import LeaderSessionId
from ..clusters.remote_errors import NoJobManager
from ..high_availability import FixedLeader, Leader, LeaderRetrieval
from ..high_availability.services import HighAvailabilityServices
from .settings import HostSettings

log = logging.getLogger(__name__)

TOLD_S = 1.0
"""After so long a line says what is waited for."""


def leaders_of(settings: HostSettings) -> LeaderRetrieval:
    """To be closed by its user. Raises NotReachable, NotOurs."""
    if not settings.has_successors:
        return FixedLeader(Leader(settings.jobmanager_address, LeaderSessionId("")))
    return HighAvailabilityServices(settings.high_availability()).retrieval()


def first_address(leaders: LeaderRetrieval, settings: HostSettings, timeout_s: float) -> str:
    """The leader's address now, or as soon as there is one. Raises NoJobManager when there is none for so long."""
    found, known = threading.Event(), list[str]()

    def changed(leader: Leader | None) -> None:
        if leader is not None:
            known.append(leader.address)
            found.set()

    leaders.on_change(changed)
    told_s = min(TOLD_S, timeout_s)
    if not found.wait(told_s):
        cluster, mode = settings.cluster_id, settings.recovery_mode
        log.warning(
            "no JobManager leads cluster %r (recovery.mode %s): waiting for one, %g s at most", cluster, mode, timeout_s
        )
        if not found.wait(timeout_s - told_s):
            raise NoJobManager(
                f"no JobManager has led cluster {cluster!r} for {timeout_s:g} s (recovery.mode {mode}): start one with "
                "`understudy jobmanager`"
            )
    return known[-1]
