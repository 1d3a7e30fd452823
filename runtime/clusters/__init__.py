"""Where jobs run: on this machine's processes, or on Spark. Same JobManager, same TaskManagers."""

from .announcement import Announcement
from .cluster import Cluster
from .cluster_settings import ClusterSettings
from .configuration import InvalidConfiguration
from .job_client import JobClient
from .job_errors import (
    JobCanceled,
    JobFailed,
    JobLost,
    ResultsUnavailable,
    SavepointFailed,
    SavepointNotDisposed,
    UnknownOperator,
)
from .job_future import JobFuture
from .job_handle import JobHandle
from .local_cluster import LocalCluster
from .outlet import Outlet, OutletBatch
from .outlet_errors import CursorExpired, CursorForked, InvalidCursor, OutletError
from .remote_cluster import RemoteCluster
from .remote_errors import AmbiguousJob, KeyRefused, NoAnswer, NoJobManager, NoSuchJob, Refused, RemoteError
from .spark_cluster import SparkCluster
from .watermark_explanation import HeldBy, SubtaskWatermark, WatermarkExplanation

__all__ = [
    "AmbiguousJob",
    "Announcement",
    "Cluster",
    "ClusterSettings",
    "CursorExpired",
    "CursorForked",
    "HeldBy",
    "InvalidConfiguration",
    "InvalidCursor",
    "JobCanceled",
    "JobClient",
    "JobFailed",
    "JobFuture",
    "JobHandle",
    "JobLost",
    "KeyRefused",
    "LocalCluster",
    "NoAnswer",
    "NoJobManager",
    "NoSuchJob",
    "Outlet",
    "OutletBatch",
    "OutletError",
    "Refused",
    "RemoteCluster",
    "RemoteError",
    "ResultsUnavailable",
    "SavepointFailed",
    "SavepointNotDisposed",
    "SparkCluster",
    "SubtaskWatermark",
    "UnknownOperator",
    "WatermarkExplanation",
]
