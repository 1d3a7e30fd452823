"""Who leads a cluster, how others find that JobManager, and what it keeps for its successor: in ZooKeeper or in shared
storage.
"""

from .leader import FixedLeader, Leader, LeaderRetrieval

__all__ = ["FixedLeader", "Leader", "LeaderRetrieval"]
