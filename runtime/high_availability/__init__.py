"""Who leads a cluster, how others find that JobManager, and what it keeps for its successor: in ZooKeeper or in shared
storage.
"""

from .errors import CannotTakeOver, HighAvailabilityError, NotOurs, NotReachable
from .leader import FixedLeader, Leader, LeaderRetrieval

__all__ = [
    "CannotTakeOver",
    "FixedLeader",
    "HighAvailabilityError",
    "Leader",
    "LeaderRetrieval",
    "NotOurs",
    "NotReachable",
]
