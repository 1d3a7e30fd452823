"""What users call: the environment, streams, the job's handle, and their errors. `translate` is for clusters."""

from .environment import StreamEnvironment
from .errors import (
    ApiError,
    ClusterTooSmall,
    DuplicateName,
    ForeignStream,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    JobCanceled,
    JobFailed,
    JobLost,
    NoSink,
    NotPicklable,
    OperatorCheckFailed,
    ResultsUnavailable,
    SavepointFailed,
    SavepointNotDisposed,
    SchemaMismatch,
    UnknownColumn,
    UnknownOperator,
)
from .job_handle import JobClient, JobHandle
from .restart import exponential_delay, failure_rate, fixed_delay, no_restart
from .stream import ConnectedStreams, DataStream, DataStreamSink, KeyedStream
from .translation import DataFrameBinding, Translation, translate

__all__ = [
    "ApiError",
    "ClusterTooSmall",
    "ConnectedStreams",
    "DataFrameBinding",
    "DataStream",
    "DataStreamSink",
    "DuplicateName",
    "ForeignStream",
    "InvalidOperator",
    "InvalidProgram",
    "InvalidSetting",
    "JobCanceled",
    "JobClient",
    "JobFailed",
    "JobHandle",
    "JobLost",
    "KeyedStream",
    "NoSink",
    "NotPicklable",
    "OperatorCheckFailed",
    "ResultsUnavailable",
    "SavepointFailed",
    "SavepointNotDisposed",
    "SchemaMismatch",
    "StreamEnvironment",
    "Translation",
    "UnknownColumn",
    "UnknownOperator",
    "exponential_delay",
    "failure_rate",
    "fixed_delay",
    "no_restart",
    "translate",
]
