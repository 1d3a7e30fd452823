"""Surprises: what a job does that is right, and other than most would expect: its log says so when it is submitted."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ...actors.async_calls.failed_record import ERRORS
from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.operator import Operator
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...messages import CheckpointConfig, JobGraph
from ...state import ROCKSDB
from .captured_changes import warn_of_captured_changes
from .late_variables import plain_variables, warn_of_late_variables
from .stream_graph import StreamNode

log = logging.getLogger(__name__)


def warn_of_surprises(graph: JobGraph, nodes: Sequence[StreamNode], operators: Mapping[int, Operator]) -> None:
    """Of what runs, and does other than most would expect."""
    _warn_of_sinks_that_wait(nodes, graph.checkpoints)
    _warn_of_unread_errors(nodes)
    _warn_of_plain_files(graph)
    for node in nodes:
        warn_of_captured_changes(node.name, operators[node.position])
        now = plain_variables(node.operator, node.selectors) if node.plain_variables else {}
        warn_of_late_variables(node.name, node.plain_variables, now)


def _warn_of_sinks_that_wait(nodes: Sequence[StreamNode], checkpoints: CheckpointConfig) -> None:
    """Transactions are committed when a checkpoint completes."""
    kinds = (TwoPhaseCommitSink, LedgerSink)
    waiting = [repr(node.name) for node in nodes if isinstance(node.operator, kinds) and not node.bounded]
    if waiting and checkpoints.interval_ms is None:
        log.warning(
            "sink %s publishes with each checkpoint, and this job, which has no end, takes none but savepoints: set "
            "checkpoint_interval_ms",
            ", ".join(waiting),
        )


def _warn_of_unread_errors(nodes: Sequence[StreamNode]) -> None:
    """What operators with coroutines put on a stream of errors that leads nowhere is gone."""
    read = {edge.source.position for node in nodes for edge in node.inputs if edge.output_tag == ERRORS.name}
    for node in nodes:
        settings = node.operator.async_settings if node.operator._is_async else None
        if settings and settings.on_error == "errors" and settings.default is None and node.position not in read:
            log.warning(
                'operator %r has on_error="errors", and nothing reads its errors: records that it gives up are '
                "dropped. Read them, as in stream.errors.collect(name=...), or leave on_error out",
                node.name,
            )


def _warn_of_plain_files(graph: JobGraph) -> None:
    """RocksDB's own files are not encrypted; the copies of them in checkpoints are."""
    if graph.checkpoints.encryption_key and graph.state_backend == ROCKSDB:
        log.warning(
            "job %r encrypts its checkpoints, but RocksDB's working files (%s) are not encrypted: set state_dir to a "
            "folder on an encrypted disk of each TaskManager, or use another state_backend",
            graph.name,
            graph.local_state.directory or "in the folder for temporary files, as state_dir is not set",
        )
