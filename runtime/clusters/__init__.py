"""Where jobs run: on this machine's processes, or on Spark. Same JobManager, same TaskManagers."""

from .cluster import Cluster, ClusterSettings
from .configuration import InvalidConfiguration
from .local_cluster import LocalCluster
from .remote_cluster import RemoteCluster
from .remote_errors import AmbiguousJob, KeyRefused, NoAnswer, NoJobManager, NoSuchJob, Refused, RemoteError
from .spark_cluster import SparkCluster

__all__ = [
    "AmbiguousJob",
    "Cluster",
    "ClusterSettings",
    "InvalidConfiguration",
    "KeyRefused",
    "LocalCluster",
    "NoAnswer",
    "NoJobManager",
    "NoSuchJob",
    "Refused",
    "RemoteCluster",
    "RemoteError",
    "SparkCluster",
]
