"""Understudy: a fault-tolerant, stateful stream processing runtime of asyncio actors on Spark.

Everything that jobs and actors need is imported from here, and what their tests need from `understudy.testing`;
docs/api.md lists it. A call that waits takes `timeout`, in seconds, as Python's own do; every other duration is in
milliseconds, and its name ends in `_ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .runtime.lazy_names import home_of_each, lazy_names

if TYPE_CHECKING:
    from .actors.actor import Actor as Actor
    from .actors.actor import RestartLimit as RestartLimit
    from .actors.actor import Step as Step
    from .actors.actor import SupervisorStrategy as SupervisorStrategy
    from .actors.actor import Terminated as Terminated
    from .actors.answer import Answer as Answer
    from .actors.ask_errors import ActorDead as ActorDead
    from .actors.ask_errors import AskFailed as AskFailed
    from .actors.ask_errors import AskTimeout as AskTimeout
    from .actors.ask_errors import KeyWanted as KeyWanted
    from .actors.ask_errors import NoSuchVertex as NoSuchVertex
    from .actors.ask_errors import NotRunning as NotRunning
    from .actors.ask_errors import RemoteActorError as RemoteActorError
    from .actors.ask_errors import Unreachable as Unreachable
    from .actors.async_calls.failed_record import FailedRecord as FailedRecord
    from .actors.async_calls.retry import Retry as Retry
    from .actors.async_calls.settings import AsyncSettings as AsyncSettings
    from .actors.compiled.errors import CannotCompile as CannotCompile
    from .actors.compiled.errors import NullRead as NullRead
    from .actors.compiled.errors import NumbaMissing as NumbaMissing
    from .actors.context import ActorContext as ActorContext
    from .actors.context import Clock as Clock
    from .actors.context import Ref as Ref
    from .actors.context import Timer as Timer
    from .actors.errors import ActorError as ActorError
    from .actors.errors import CallTimedOut as CallTimedOut
    from .actors.errors import CannotLoad as CannotLoad
    from .actors.errors import CannotRescale as CannotRescale
    from .actors.errors import CannotRestore as CannotRestore
    from .actors.errors import EndlessTimers as EndlessTimers
    from .actors.errors import InvalidTimeout as InvalidTimeout
    from .actors.errors import MarkerMismatch as MarkerMismatch
    from .actors.errors import MarkerMoved as MarkerMoved
    from .actors.errors import MessageNotHandled as MessageNotHandled
    from .actors.errors import NoEventTime as NoEventTime
    from .actors.errors import NoReadableCheckpoint as NoReadableCheckpoint
    from .actors.errors import NoTimerMethod as NoTimerMethod
    from .actors.errors import OutputInUse as OutputInUse
    from .actors.errors import OutsideUnavailable as OutsideUnavailable
    from .actors.errors import RecordNotSent as RecordNotSent
    from .actors.errors import StateDoesNotFit as StateDoesNotFit
    from .actors.errors import SuperNotCalled as SuperNotCalled
    from .actors.errors import UnknownJob as UnknownJob
    from .actors.errors import UnusableRecord as UnusableRecord
    from .actors.errors import UnwantedResult as UnwantedResult
    from .actors.flow.elements import Batch as Batch
    from .actors.flow.key_selector import KeySelectionFailed as KeySelectionFailed
    from .actors.flow.key_selector import NoSuchColumn as NoSuchColumn
    from .actors.flow.key_selector import NullKey as NullKey
    from .actors.flow.key_selector import UnstableKey as UnstableKey
    from .actors.flow.key_selector import UnusableKey as UnusableKey
    from .actors.flow.records import RecordMismatch as RecordMismatch
    from .actors.operators import END as END
    from .actors.operators import Avg as Avg
    from .actors.operators import Collector as Collector
    from .actors.operators import CommittableWriter as CommittableWriter
    from .actors.operators import Committer as Committer
    from .actors.operators import Count as Count
    from .actors.operators import Counter as Counter
    from .actors.operators import FromSplit as FromSplit
    from .actors.operators import Gauge as Gauge
    from .actors.operators import Histogram as Histogram
    from .actors.operators import IdempotentSink as IdempotentSink
    from .actors.operators import KeyedOperator as KeyedOperator
    from .actors.operators import KeyedTimer as KeyedTimer
    from .actors.operators import LedgerSink as LedgerSink
    from .actors.operators import Marker as Marker
    from .actors.operators import Max as Max
    from .actors.operators import Meter as Meter
    from .actors.operators import MetricGroup as MetricGroup
    from .actors.operators import Min as Min
    from .actors.operators import Operator as Operator
    from .actors.operators import OperatorContext as OperatorContext
    from .actors.operators import OutputTag as OutputTag
    from .actors.operators import Source as Source
    from .actors.operators import SourceState as SourceState
    from .actors.operators import Sum as Sum
    from .actors.operators import Timers as Timers
    from .actors.operators import TwoPhaseCommitSink as TwoPhaseCommitSink
    from .actors.operators import UnusableTime as UnusableTime
    from .actors.operators import WatermarkGenerator as WatermarkGenerator
    from .actors.operators import WatermarkStrategy as WatermarkStrategy
    from .actors.operators import bounded_out_of_orderness as bounded_out_of_orderness
    from .actors.operators import monotonous as monotonous
    from .actors.operators import punctuated as punctuated
    from .actors.operators.loops import LoopIsOver as LoopIsOver
    from .actors.windows import AggregateFunction as AggregateFunction
    from .actors.windows import Change as Change
    from .actors.windows import Evictor as Evictor
    from .actors.windows import GlobalWindow as GlobalWindow
    from .actors.windows import InvalidWindow as InvalidWindow
    from .actors.windows import ProcessWindowFunction as ProcessWindowFunction
    from .actors.windows import TimedRecord as TimedRecord
    from .actors.windows import TimeWindow as TimeWindow
    from .actors.windows import Trigger as Trigger
    from .actors.windows import TriggerContext as TriggerContext
    from .actors.windows import TriggerResult as TriggerResult
    from .actors.windows import WindowAssigner as WindowAssigner
    from .actors.windows import all_of as all_of
    from .actors.windows import any_of as any_of
    from .actors.windows import continuous_event_time as continuous_event_time
    from .actors.windows import continuous_processing_time as continuous_processing_time
    from .actors.windows import count as count
    from .actors.windows import count_window as count_window
    from .actors.windows import cumulative as cumulative
    from .actors.windows import event_time as event_time
    from .actors.windows import global_window as global_window
    from .actors.windows import keep_last as keep_last
    from .actors.windows import keep_newest as keep_newest
    from .actors.windows import never as never
    from .actors.windows import processing_time as processing_time
    from .actors.windows import purging as purging
    from .actors.windows import session as session
    from .actors.windows import sliding as sliding
    from .actors.windows import tumbling as tumbling
    from .messages import CheckpointAborted as CheckpointAborted
    from .messages import CheckpointCompleted as CheckpointCompleted
    from .messages import CheckpointHistory as CheckpointHistory
    from .messages import CheckpointId as CheckpointId
    from .messages import CheckpointStatistics as CheckpointStatistics
    from .messages import CheckpointTaken as CheckpointTaken
    from .messages import ClusterMetrics as ClusterMetrics
    from .messages import DictRow as DictRow
    from .messages import FailureCause as FailureCause
    from .messages import FailureKind as FailureKind
    from .messages import FirstBatchProcessed as FirstBatchProcessed
    from .messages import FlameGraph as FlameGraph
    from .messages import HoldingChannel as HoldingChannel
    from .messages import HoldingSplit as HoldingSplit
    from .messages import JobDetails as JobDetails
    from .messages import JobId as JobId
    from .messages import JobMetrics as JobMetrics
    from .messages import JobStatus as JobStatus
    from .messages import JobStatusChanged as JobStatusChanged
    from .messages import JobSubmitted as JobSubmitted
    from .messages import JobSummary as JobSummary
    from .messages import MessageError as MessageError
    from .messages import MessageTooLarge as MessageTooLarge
    from .messages import MissingColumn as MissingColumn
    from .messages import Predecessor as Predecessor
    from .messages import RestartStrategyConfig as RestartStrategyConfig
    from .messages import RestoredFrom as RestoredFrom
    from .messages import Row as Row
    from .messages import SampledFrame as SampledFrame
    from .messages import Serializer as Serializer
    from .messages import SnapshotMetrics as SnapshotMetrics
    from .messages import SubtaskBackPressureReport as SubtaskBackPressureReport
    from .messages import SubtaskMetrics as SubtaskMetrics
    from .messages import SubtaskStatistics as SubtaskStatistics
    from .messages import TaskEventTime as TaskEventTime
    from .messages import TaskManagerChanged as TaskManagerChanged
    from .messages import TaskManagerMetrics as TaskManagerMetrics
    from .messages import TaskMetrics as TaskMetrics
    from .messages import UnregisteredMessage as UnregisteredMessage
    from .messages import UnsupportedValue as UnsupportedValue
    from .messages import VertexBackPressureReport as VertexBackPressureReport
    from .messages import VertexMetrics as VertexMetrics
    from .messages import message as message
    from .messages import register_serializer as register_serializer
    from .runtime.api.environment import StreamEnvironment as StreamEnvironment
    from .runtime.api.errors import ApiError as ApiError
    from .runtime.api.errors import ClusterTooSmall as ClusterTooSmall
    from .runtime.api.errors import DuplicateName as DuplicateName
    from .runtime.api.errors import ForeignStream as ForeignStream
    from .runtime.api.errors import InvalidOperator as InvalidOperator
    from .runtime.api.errors import InvalidProgram as InvalidProgram
    from .runtime.api.errors import InvalidSetting as InvalidSetting
    from .runtime.api.errors import NoSink as NoSink
    from .runtime.api.errors import NotPicklable as NotPicklable
    from .runtime.api.errors import OperatorCheckFailed as OperatorCheckFailed
    from .runtime.api.errors import SchemaMismatch as SchemaMismatch
    from .runtime.api.errors import UnknownColumn as UnknownColumn
    from .runtime.api.restart import exponential_delay as exponential_delay
    from .runtime.api.restart import failure_rate as failure_rate
    from .runtime.api.restart import fixed_delay as fixed_delay
    from .runtime.api.restart import no_restart as no_restart
    from .runtime.api.stream import ConnectedStreams as ConnectedStreams
    from .runtime.api.stream import DataStream as DataStream
    from .runtime.api.stream import KeyedStream as KeyedStream
    from .runtime.api.stream import WindowedStream as WindowedStream
    from .runtime.api.stream_base import DataStreamSink as DataStreamSink
    from .runtime.api.translation import Translation as Translation
    from .runtime.clusters.announcement import Announcement as Announcement
    from .runtime.clusters.cluster import Cluster as Cluster
    from .runtime.clusters.cluster_settings import ClusterSettings as ClusterSettings
    from .runtime.clusters.configuration import InvalidConfiguration as InvalidConfiguration
    from .runtime.clusters.inlet import Inlet as Inlet
    from .runtime.clusters.job_errors import CheckpointRequestFailed as CheckpointRequestFailed
    from .runtime.clusters.job_errors import InletClosed as InletClosed
    from .runtime.clusters.job_errors import JobCanceled as JobCanceled
    from .runtime.clusters.job_errors import JobFailed as JobFailed
    from .runtime.clusters.job_errors import JobLost as JobLost
    from .runtime.clusters.job_errors import NumberGap as NumberGap
    from .runtime.clusters.job_errors import ResultsUnavailable as ResultsUnavailable
    from .runtime.clusters.job_errors import SavepointFailed as SavepointFailed
    from .runtime.clusters.job_errors import SavepointNotDisposed as SavepointNotDisposed
    from .runtime.clusters.job_errors import UnknownInlet as UnknownInlet
    from .runtime.clusters.job_errors import UnknownOperator as UnknownOperator
    from .runtime.clusters.job_future import JobFuture as JobFuture
    from .runtime.clusters.job_handle import JobHandle as JobHandle
    from .runtime.clusters.local_cluster import LocalCluster as LocalCluster
    from .runtime.clusters.outlet import Outlet as Outlet
    from .runtime.clusters.outlet import OutletBatch as OutletBatch
    from .runtime.clusters.outlet_errors import CursorExpired as CursorExpired
    from .runtime.clusters.outlet_errors import CursorForked as CursorForked
    from .runtime.clusters.outlet_errors import InvalidCursor as InvalidCursor
    from .runtime.clusters.outlet_errors import OutletError as OutletError
    from .runtime.clusters.remote_cluster import RemoteCluster as RemoteCluster
    from .runtime.clusters.remote_errors import AmbiguousJob as AmbiguousJob
    from .runtime.clusters.remote_errors import KeyRefused as KeyRefused
    from .runtime.clusters.remote_errors import NoAnswer as NoAnswer
    from .runtime.clusters.remote_errors import NoJobManager as NoJobManager
    from .runtime.clusters.remote_errors import NoSuchJob as NoSuchJob
    from .runtime.clusters.remote_errors import Refused as Refused
    from .runtime.clusters.remote_errors import RemoteError as RemoteError
    from .runtime.clusters.sent import Sent as Sent
    from .runtime.clusters.spark_cluster import SparkCluster as SparkCluster
    from .runtime.clusters.watermark_explanation import HeldBy as HeldBy
    from .runtime.clusters.watermark_explanation import SubtaskWatermark as SubtaskWatermark
    from .runtime.clusters.watermark_explanation import WatermarkExplanation as WatermarkExplanation
    from .runtime.clusters.web import asgi_app as asgi_app
    from .runtime.connectors import AvroFormat as AvroFormat
    from .runtime.connectors import ChangesLost as ChangesLost
    from .runtime.connectors import ColumnConflict as ColumnConflict
    from .runtime.connectors import ConnectorError as ConnectorError
    from .runtime.connectors import DatabaseRefused as DatabaseRefused
    from .runtime.connectors import DatabaseUnreachable as DatabaseUnreachable
    from .runtime.connectors import DataGone as DataGone
    from .runtime.connectors import DeltaSink as DeltaSink
    from .runtime.connectors import DeltaSource as DeltaSource
    from .runtime.connectors import FileSink as FileSink
    from .runtime.connectors import HttpRefused as HttpRefused
    from .runtime.connectors import HttpSource as HttpSource
    from .runtime.connectors import IcebergSink as IcebergSink
    from .runtime.connectors import IcebergSource as IcebergSource
    from .runtime.connectors import IndexShare as IndexShare
    from .runtime.connectors import InletLogDamaged as InletLogDamaged
    from .runtime.connectors import InletSchemaChanged as InletSchemaChanged
    from .runtime.connectors import InputChanged as InputChanged
    from .runtime.connectors import KafkaError as KafkaError
    from .runtime.connectors import KafkaFormat as KafkaFormat
    from .runtime.connectors import KafkaRefused as KafkaRefused
    from .runtime.connectors import KafkaSink as KafkaSink
    from .runtime.connectors import KafkaSource as KafkaSource
    from .runtime.connectors import KafkaUnavailable as KafkaUnavailable
    from .runtime.connectors import KeyNotUnique as KeyNotUnique
    from .runtime.connectors import LakeUnreachable as LakeUnreachable
    from .runtime.connectors import LineSource as LineSource
    from .runtime.connectors import LostDataFile as LostDataFile
    from .runtime.connectors import LostTransaction as LostTransaction
    from .runtime.connectors import MissingExtra as MissingExtra
    from .runtime.connectors import NoCatalog as NoCatalog
    from .runtime.connectors import NoInput as NoInput
    from .runtime.connectors import NonDeterministicSource as NonDeterministicSource
    from .runtime.connectors import NoSuchTable as NoSuchTable
    from .runtime.connectors import NoSuchTopic as NoSuchTopic
    from .runtime.connectors import NoTable as NoTable
    from .runtime.connectors import NotReplicable as NotReplicable
    from .runtime.connectors import OffsetMismatch as OffsetMismatch
    from .runtime.connectors import OutputTakenOver as OutputTakenOver
    from .runtime.connectors import PartitionFailed as PartitionFailed
    from .runtime.connectors import PostgresChanges as PostgresChanges
    from .runtime.connectors import RedisListSink as RedisListSink
    from .runtime.connectors import RedisRefused as RedisRefused
    from .runtime.connectors import RedisStreamSink as RedisStreamSink
    from .runtime.connectors import RedisStreamSource as RedisStreamSource
    from .runtime.connectors import RedisUpsertSink as RedisUpsertSink
    from .runtime.connectors import ReplicationError as ReplicationError
    from .runtime.connectors import RewindImpossible as RewindImpossible
    from .runtime.connectors import RowsChanged as RowsChanged
    from .runtime.connectors import RowsLeftOut as RowsLeftOut
    from .runtime.connectors import ServerEvent as ServerEvent
    from .runtime.connectors import SlotInUse as SlotInUse
    from .runtime.connectors import SparkQueryFailed as SparkQueryFailed
    from .runtime.connectors import SpoolMismatch as SpoolMismatch
    from .runtime.connectors import SqlError as SqlError
    from .runtime.connectors import SqlSink as SqlSink
    from .runtime.connectors import SqlSource as SqlSource
    from .runtime.connectors import SqlTable as SqlTable
    from .runtime.connectors import SqlUpsertSink as SqlUpsertSink
    from .runtime.connectors import SseSource as SseSource
    from .runtime.connectors import StatementFailed as StatementFailed
    from .runtime.connectors import StreamTrimmed as StreamTrimmed
    from .runtime.connectors import TableChanged as TableChanged
    from .runtime.connectors import TableMismatch as TableMismatch
    from .runtime.connectors import TransactionLost as TransactionLost
    from .runtime.connectors import UnknownFileSystem as UnknownFileSystem
    from .runtime.connectors import UnreadableFile as UnreadableFile
    from .runtime.connectors import UnreadableInput as UnreadableInput
    from .runtime.connectors import UnreadableMessage as UnreadableMessage
    from .runtime.connectors import UnsupportedTable as UnsupportedTable
    from .runtime.connectors import UnusableOutput as UnusableOutput
    from .runtime.connectors import VersionGone as VersionGone
    from .runtime.connectors import WebsocketSource as WebsocketSource
    from .runtime.high_availability import AccessDenied as AccessDenied
    from .runtime.high_availability import AnotherCluster as AnotherCluster
    from .runtime.high_availability import CannotTakeOver as CannotTakeOver
    from .runtime.high_availability import HighAvailabilityError as HighAvailabilityError
    from .runtime.high_availability import NotOurs as NotOurs
    from .runtime.high_availability import NotReachable as NotReachable
    from .runtime.high_availability import UnusableFile as UnusableFile
    from .runtime.hosts.errors import HostError as HostError
    from .runtime.hosts.errors import InvalidSettings as InvalidSettings
    from .runtime.hosts.errors import NoKeyFile as NoKeyFile
    from .runtime.hosts.errors import ProcessFailed as ProcessFailed
    from .runtime.hosts.errors import ProgramRefused as ProgramRefused
    from .runtime.hosts.standalone_cluster import StandaloneCluster as StandaloneCluster
    from .runtime.metrics.json_lines import JsonLines as JsonLines
    from .runtime.savepoints.difference import SavepointDiff as SavepointDiff
    from .runtime.savepoints.difference import StateChange as StateChange
    from .runtime.savepoints.difference import StateDiff as StateDiff
    from .runtime.savepoints.edit import OperatorEdit as OperatorEdit
    from .runtime.savepoints.edit import SavepointEdit as SavepointEdit
    from .runtime.savepoints.edit import StateEdit as StateEdit
    from .runtime.savepoints.errors import IncompleteSavepoint as IncompleteSavepoint
    from .runtime.savepoints.errors import InvalidEdit as InvalidEdit
    from .runtime.savepoints.errors import NoSuchState as NoSuchState
    from .runtime.savepoints.errors import NotASavepoint as NotASavepoint
    from .runtime.savepoints.errors import NotComparable as NotComparable
    from .runtime.savepoints.errors import QueryFailed as QueryFailed
    from .runtime.savepoints.errors import SavepointError as SavepointError
    from .runtime.savepoints.errors import UnreadableState as UnreadableState
    from .runtime.savepoints.opened import Savepoint as Savepoint
    from .runtime.savepoints.reading import SavepointOperator as SavepointOperator
    from .runtime.savepoints.state_table import StateTable as StateTable
    from .runtime.savepoints.verification import Verification as Verification
    from .runtime.system import ActorFuture as ActorFuture
    from .runtime.system import ActorSystem as ActorSystem
    from .runtime.system import ActorSystemError as ActorSystemError
    from .runtime.system import CurveKeys as CurveKeys
    from .runtime.system import DeadLetter as DeadLetter
    from .runtime.system import DeadLetterReason as DeadLetterReason
    from .runtime.system import DeadLetters as DeadLetters
    from .runtime.system import FutureTimeout as FutureTimeout
    from .runtime.system import InsecureKeyFile as InsecureKeyFile
    from .runtime.system import InvalidAddress as InvalidAddress
    from .runtime.system import LocalRef as LocalRef
    from .runtime.system import NamedRef as NamedRef
    from .runtime.system import NameTaken as NameTaken
    from .runtime.system import RemoteRef as RemoteRef
    from .runtime.system import SystemStopped as SystemStopped
    from .runtime.system import TransportOptions as TransportOptions
    from .state import AlreadyFinished as AlreadyFinished
    from .state import AlreadyRunning as AlreadyRunning
    from .state import CallIsOver as CallIsOver
    from .state import CorruptState as CorruptState
    from .state import FoldingState as FoldingState
    from .state import HasCurrentKey as HasCurrentKey
    from .state import InvalidEncryptionKeys as InvalidEncryptionKeys
    from .state import InvalidKey as InvalidKey
    from .state import InvalidState as InvalidState
    from .state import InvalidStorageSetting as InvalidStorageSetting
    from .state import ListState as ListState
    from .state import LocalStateFailed as LocalStateFailed
    from .state import LostOwnership as LostOwnership
    from .state import MapState as MapState
    from .state import MissingState as MissingState
    from .state import NoCurrentKey as NoCurrentKey
    from .state import OperatorListState as OperatorListState
    from .state import ReadOnlyState as ReadOnlyState
    from .state import ReducingState as ReducingState
    from .state import RequestFailed as RequestFailed
    from .state import SnapshotTooLarge as SnapshotTooLarge
    from .state import StateError as StateError
    from .state import StateIncompatible as StateIncompatible
    from .state import StateNotStorable as StateNotStorable
    from .state import StorageError as StorageError
    from .state import Ttl as Ttl
    from .state import UnboundState as UnboundState
    from .state import UnreachableRoot as UnreachableRoot
    from .state import UnwritableFolder as UnwritableFolder
    from .state import UnwritableRoot as UnwritableRoot
    from .state import UpdateForgotten as UpdateForgotten
    from .state import ValueState as ValueState
    from .state import WrongColumn as WrongColumn
    from .state import WrongEncryptionKey as WrongEncryptionKey
    from .state import WrongStateType as WrongStateType

__version__ = "0.1.0"

_HOMES = {
    "actors.actor": "Actor RestartLimit Step SupervisorStrategy Terminated",
    "actors.answer": "Answer",
    "actors.ask_errors": (
        "ActorDead AskFailed AskTimeout KeyWanted NoSuchVertex NotRunning RemoteActorError Unreachable"
    ),
    "actors.async_calls.failed_record": "FailedRecord",
    "actors.async_calls.retry": "Retry",
    "actors.async_calls.settings": "AsyncSettings",
    "actors.compiled.errors": "CannotCompile NullRead NumbaMissing",
    "actors.context": "ActorContext Clock Ref Timer",
    "actors.errors": (
        "ActorError CallTimedOut CannotLoad CannotRescale CannotRestore EndlessTimers InvalidTimeout MarkerMismatch "
        "MarkerMoved MessageNotHandled NoEventTime NoReadableCheckpoint NoTimerMethod OutputInUse OutsideUnavailable "
        "RecordNotSent StateDoesNotFit SuperNotCalled UnknownJob UnusableRecord UnwantedResult"
    ),
    "actors.flow.elements": "Batch",
    "actors.flow.key_selector": "KeySelectionFailed NoSuchColumn NullKey UnstableKey UnusableKey",
    "actors.flow.records": "RecordMismatch",
    "actors.operators": (
        "Avg Collector CommittableWriter Committer Count Counter END FromSplit Gauge Histogram IdempotentSink "
        "KeyedOperator KeyedTimer LedgerSink Marker Max Meter MetricGroup Min Operator OperatorContext OutputTag "
        "Source SourceState Sum Timers TwoPhaseCommitSink UnusableTime WatermarkGenerator WatermarkStrategy "
        "bounded_out_of_orderness monotonous punctuated"
    ),
    "actors.operators.loops": "LoopIsOver",
    "actors.windows": (
        "AggregateFunction Change Evictor GlobalWindow InvalidWindow ProcessWindowFunction TimeWindow TimedRecord "
        "Trigger TriggerContext TriggerResult WindowAssigner all_of any_of continuous_event_time "
        "continuous_processing_time count count_window cumulative event_time global_window keep_last keep_newest "
        "never processing_time purging session sliding tumbling"
    ),
    "messages": (
        "CheckpointAborted CheckpointCompleted CheckpointHistory CheckpointId CheckpointStatistics CheckpointTaken "
        "ClusterMetrics "
        "DictRow FailureCause FailureKind FirstBatchProcessed FlameGraph HoldingChannel HoldingSplit JobDetails "
        "JobId JobMetrics JobStatus JobStatusChanged JobSubmitted JobSummary MessageError MessageTooLarge "
        "MissingColumn Predecessor RestartStrategyConfig RestoredFrom Row SampledFrame Serializer SnapshotMetrics "
        "SubtaskBackPressureReport SubtaskMetrics SubtaskStatistics TaskEventTime TaskManagerChanged "
        "TaskManagerMetrics TaskMetrics UnregisteredMessage UnsupportedValue VertexBackPressureReport "
        "VertexMetrics message register_serializer"
    ),
    "runtime.api.environment": "StreamEnvironment",
    "runtime.api.errors": (
        "ApiError ClusterTooSmall DuplicateName ForeignStream InvalidOperator InvalidProgram InvalidSetting "
        "NoSink NotPicklable OperatorCheckFailed SchemaMismatch UnknownColumn"
    ),
    "runtime.api.restart": "exponential_delay failure_rate fixed_delay no_restart",
    "runtime.api.stream": "ConnectedStreams DataStream KeyedStream WindowedStream",
    "runtime.api.stream_base": "DataStreamSink",
    "runtime.api.translation": "Translation",
    "runtime.clusters.announcement": "Announcement",
    "runtime.clusters.cluster": "Cluster",
    "runtime.clusters.cluster_settings": "ClusterSettings",
    "runtime.clusters.configuration": "InvalidConfiguration",
    "runtime.clusters.inlet": "Inlet",
    "runtime.clusters.job_errors": (
        "CheckpointRequestFailed InletClosed JobCanceled JobFailed JobLost NumberGap ResultsUnavailable "
        "SavepointFailed SavepointNotDisposed UnknownInlet UnknownOperator"
    ),
    "runtime.clusters.job_future": "JobFuture",
    "runtime.clusters.job_handle": "JobHandle",
    "runtime.clusters.local_cluster": "LocalCluster",
    "runtime.clusters.outlet": "Outlet OutletBatch",
    "runtime.clusters.outlet_errors": "CursorExpired CursorForked InvalidCursor OutletError",
    "runtime.clusters.remote_cluster": "RemoteCluster",
    "runtime.clusters.remote_errors": "AmbiguousJob KeyRefused NoAnswer NoJobManager NoSuchJob Refused RemoteError",
    "runtime.clusters.sent": "Sent",
    "runtime.clusters.spark_cluster": "SparkCluster",
    "runtime.clusters.watermark_explanation": "HeldBy SubtaskWatermark WatermarkExplanation",
    "runtime.hosts.errors": "HostError InvalidSettings NoKeyFile ProcessFailed ProgramRefused",
    "runtime.hosts.standalone_cluster": "StandaloneCluster",
    "runtime.clusters.web": "asgi_app",
    "runtime.connectors": (
        "AvroFormat ChangesLost ColumnConflict ConnectorError DataGone DatabaseRefused DatabaseUnreachable "
        "DeltaSink DeltaSource FileSink HttpRefused HttpSource IcebergSink IcebergSource IndexShare "
        "InletLogDamaged InletSchemaChanged InputChanged KafkaError KafkaFormat KafkaRefused KafkaSink "
        "KafkaSource KafkaUnavailable KeyNotUnique LakeUnreachable LineSource LostDataFile LostTransaction "
        "MissingExtra NoCatalog NoInput NoSuchTable NoSuchTopic NoTable NonDeterministicSource "
        "NotReplicable OffsetMismatch OutputTakenOver PartitionFailed PostgresChanges RedisListSink RedisRefused "
        "RedisStreamSink RedisStreamSource RedisUpsertSink "
        "ReplicationError RewindImpossible RowsChanged RowsLeftOut ServerEvent SlotInUse SqlError SqlSink SqlSource "
        "SqlTable SqlUpsertSink SseSource SparkQueryFailed SpoolMismatch StatementFailed StreamTrimmed TableChanged "
        "TableMismatch TransactionLost UnknownFileSystem UnreadableFile UnreadableInput UnreadableMessage "
        "UnsupportedTable UnusableOutput VersionGone WebsocketSource"
    ),
    "runtime.high_availability": (
        "AccessDenied AnotherCluster CannotTakeOver HighAvailabilityError NotOurs NotReachable UnusableFile"
    ),
    "runtime.savepoints.difference": "SavepointDiff StateChange StateDiff",
    "runtime.savepoints.edit": "OperatorEdit SavepointEdit StateEdit",
    "runtime.savepoints.errors": (
        "IncompleteSavepoint InvalidEdit NoSuchState NotASavepoint NotComparable QueryFailed SavepointError "
        "UnreadableState"
    ),
    "runtime.savepoints.opened": "Savepoint",
    "runtime.savepoints.reading": "SavepointOperator",
    "runtime.savepoints.state_table": "StateTable",
    "runtime.savepoints.verification": "Verification",
    "runtime.metrics.json_lines": "JsonLines",
    "runtime.system": (
        "ActorFuture ActorSystem ActorSystemError CurveKeys DeadLetter DeadLetterReason DeadLetters FutureTimeout "
        "InsecureKeyFile InvalidAddress LocalRef NameTaken NamedRef RemoteRef SystemStopped TransportOptions"
    ),
    "state": (
        "AlreadyFinished AlreadyRunning CallIsOver CorruptState FoldingState HasCurrentKey InvalidEncryptionKeys "
        "InvalidKey InvalidState InvalidStorageSetting ListState LocalStateFailed LostOwnership MapState "
        "MissingState NoCurrentKey OperatorListState ReadOnlyState ReducingState RequestFailed SnapshotTooLarge "
        "StateError StateIncompatible StateNotStorable StorageError Ttl UnboundState UnreachableRoot UnwritableFolder "
        "UnwritableRoot UpdateForgotten ValueState WrongColumn WrongEncryptionKey WrongStateType"
    ),
}
"""Where each public name lives. Loaded on first use, so that importing one floor does not import all of them."""

_HOME_OF = home_of_each(_HOMES)

__all__ = sorted(_HOME_OF)


def _in_place_of(name: str) -> str:
    """Of a class of Flink or another library: what is written here."""
    if name.startswith("_"):
        return ""
    from .runtime.api.imported_by_habit import BY_HABIT
    from .runtime.api.names_of_flink import OF_FLINK

    return OF_FLINK.get(name) or BY_HABIT.get(name, "")


__getattr__, __dir__ = lazy_names(__name__, __name__, _HOME_OF, "__version__", instead_of=_in_place_of)
