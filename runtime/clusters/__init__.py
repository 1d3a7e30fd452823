"""Where jobs run: on this machine's processes, or on Spark. Same JobManager, same TaskManagers."""

from .cluster import Cluster, ClusterSettings
from .local_cluster import LocalCluster
from .remote_cluster import RemoteCluster
from .spark_cluster import SparkCluster

__all__ = ["Cluster", "ClusterSettings", "LocalCluster", "RemoteCluster", "SparkCluster"]
