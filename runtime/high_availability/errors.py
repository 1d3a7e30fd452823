"""What can go wrong with high availability.

HighAvailabilityError
├── NotOurs             something in our place of ZooKeeper, or of shared storage, that we have not written
├── AnotherCluster      a cluster with another key leads in our place
├── ForgedSubmission    the stored program of a job has not this cluster's signature: nothing of it is run
├── CannotTakeOver      a job that is kept cannot be started again now: says why, and what to do
├── NotReachable        ZooKeeper, or shared storage, does not answer (an OSError too)
├── AccessDenied        ZooKeeper refuses our user, or its nodes are not for us alone, or not for us
├── UnusableFile        a file with a password or certificate, which a setting names, cannot be used (a ValueError too)
└── NoZooKeeperHere     a ZooKeeper for a trial cannot be started on this machine

`LostLeadership` (state/errors.py) is what a leader gets that leads no more.
"""

from __future__ import annotations


class HighAvailabilityError(Exception):
    """Base of all errors of high availability."""


class NotOurs(HighAvailabilityError):
    """Found in our place, and not written by us: it is left as it is."""

    def __init__(self, place: str, found: str) -> None:
        super().__init__(
            f"{place} holds what Understudy has not written: {found}. It is left as it is. Remove it if nobody needs "
            "it, or give the cluster another high-availability.cluster-id"
        )


class AnotherCluster(HighAvailabilityError):
    """Who waits there would never lead as long as that one lives, and could run nothing of what it leaves."""

    def __init__(self, cluster_id: str, place: str, address: str, key_file: str) -> None:
        super().__init__(
            f"cluster {cluster_id!r} in {place} is led by the JobManager at {address}, which has another key than "
            f"{key_file}. For a cluster of its own set another high-availability.cluster-id; to wait behind that "
            "JobManager, use its key file"
        )


class ForgedSubmission(HighAvailabilityError):
    """The signature is missing or wrong: the program is not unpickled."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} was not signed with this cluster's key, so nothing of it is run: a cluster with another "
            "high-availability.key-file wrote it, or somebody has changed it since"
        )


class CannotTakeOver(HighAvailabilityError):
    """The text says which job it is, why, and what to do. `job`: its name."""

    def __init__(self, job: str, text: str) -> None:
        super().__init__(text)
        self.job = job


class NotReachable(HighAvailabilityError, OSError):
    """It may have done what was asked for, or not."""


class AccessDenied(HighAvailabilityError):
    """The text says who asked, which node it is with which ACL, and what to do. To ask again changes nothing."""


class UnusableFile(HighAvailabilityError, ValueError):
    """The text says which setting names it, what was found, and what to do."""


class NoZooKeeperHere(HighAvailabilityError):
    """The text says what is missing."""
