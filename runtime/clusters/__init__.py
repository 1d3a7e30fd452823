"""Where jobs run: on this machine's processes, or on Spark. Same JobManager, same TaskManagers."""

from .announcement import Announcement
from .cluster import Cluster
from .cluster_settings import ClusterSettings
from .configuration import InvalidConfiguration
from .inlet import Inlet
from .job_client import JobClient
from .job_errors import (
    InletClosed,
    JobCanceled,
    JobFailed,
    JobLost,
    NumberGap,
    ResultsUnavailable,
    SavepointFailed,
    SavepointNotDisposed,
    UnknownInlet,
    UnknownOperator,
)
from .job_future import JobFuture
from .job_handle import JobHandle
from .local_cluster import LocalCluster
from .outlet import Outlet, OutletBatch
from .outlet_errors import CursorExpired, CursorForked, InvalidCursor, OutletError
from .remote_cluster import RemoteCluster
from .remote_errors import AmbiguousJob, KeyRefused, NoAnswer, NoJobManager, NoSuchJob, Refused, RemoteError
from .sent import Sent
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
    "Inlet",
    "InletClosed",
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
    "NumberGap",
    "Outlet",
    "OutletBatch",
    "OutletError",
    "Refused",
    "RemoteCluster",
    "RemoteError",
    "ResultsUnavailable",
    "SavepointFailed",
    "SavepointNotDisposed",
    "Sent",
    "SparkCluster",
    "SubtaskWatermark",
    "UnknownInlet",
    "UnknownOperator",
    "WatermarkExplanation",
]
