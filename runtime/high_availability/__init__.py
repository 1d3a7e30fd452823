"""Who leads a cluster, how others find that JobManager, and what it keeps for its successor: in ZooKeeper or in shared
storage.
"""

from .errors import (
    AccessDenied,
    AnotherCluster,
    CannotTakeOver,
    HighAvailabilityError,
    NotOurs,
    NotReachable,
    UnusableFile,
)
from .leader import FixedLeader, Leader, LeaderRetrieval

__all__ = [
    "AccessDenied",
    "AnotherCluster",
    "CannotTakeOver",
    "FixedLeader",
    "HighAvailabilityError",
    "Leader",
    "LeaderRetrieval",
    "NotOurs",
    "NotReachable",
    "UnusableFile",
]
