"""How programs are written: the environment, streams, and what is wrong with one. `translate` is for clusters."""

from .environment import StreamEnvironment
from .errors import (
    ApiError,
    ClusterTooSmall,
    DuplicateName,
    ForeignStream,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    NoSink,
    NotPicklable,
    OperatorCheckFailed,
    SchemaMismatch,
    UnknownColumn,
)
from .restart import exponential_delay, failure_rate, fixed_delay, no_restart
from .stream import ConnectedStreams, DataStream, DataStreamSink, KeyedStream
from .translation import DataFrameBinding, Translation, translate
from .windowed_stream import WindowedStream

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
    "KeyedStream",
    "NoSink",
    "NotPicklable",
    "OperatorCheckFailed",
    "SchemaMismatch",
    "StreamEnvironment",
    "Translation",
    "UnknownColumn",
    "WindowedStream",
    "exponential_delay",
    "failure_rate",
    "fixed_delay",
    "no_restart",
    "translate",
]
