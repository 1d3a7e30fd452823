"""Surprises: what a job does that is right, and other than most would expect: its log says so when it is submitted."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from ...actors.async_calls.failed_record import ERRORS
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...actors.windows.window_operator import WindowOperator
from ...messages import CheckpointConfig, JobGraph, Partitioning
from ...state import ROCKSDB
from .broadcast_lists import warn_of_lists_that_differ, warn_of_rules_dealt_out
from .captured_changes import warn_of_captured_changes
from .chaining import Size, partitioning_of
from .event_time import warn_of_timers_that_wait
from .late_variables import plain_variables, warn_of_late_variables
from .stream_graph import StreamNode
from .subtask_sources import warn_of_sources_read_twice

log = logging.getLogger(__name__)


def warn_of_surprises(
    graph: JobGraph, nodes: Sequence[StreamNode], sizes: Mapping[int, Size], operators: Mapping[int, Operator]
) -> None:
    """Of what runs, and does other than most would expect."""
    _warn_of_sinks_that_wait(nodes, graph.checkpoints)
    _warn_of_unread_errors(nodes)
    _warn_of_plain_files(graph)
    _warn_of_rows_out_of_order(nodes, sizes)
    warn_of_sources_read_twice(nodes, sizes)
    warn_of_timers_that_wait(nodes)
    _warn_of_windows_that_never_fire(nodes)
    warn_of_lists_that_differ(nodes, sizes)
    warn_of_rules_dealt_out(nodes)
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


def _warn_of_windows_that_never_fire(nodes: Sequence[StreamNode]) -> None:
    """One window of everything has no end at which it could fire."""
    for node in nodes:
        if isinstance(node.operator, WindowOperator) and node.operator.never_fires:
            log.warning(
                "operator %r gives no results: global_window() never fires without a trigger. Write .trigger(count(100)"
                ") behind it, or .trigger(event_time()), which fires when the data ends",
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


def _warn_of_rows_out_of_order(nodes: Sequence[StreamNode], sizes: Mapping[int, Size]) -> None:
    """Changes of one row that are dealt out to several subtasks come to a sink of rows in any order."""
    for sink in nodes:
        if not sink.operator._row_key:
            continue
        for dealt, origin in dict.fromkeys(_dealt_out(sink, sizes)):
            if sink.operator.removes_rows or _gives_changes(origin):
                log.warning(
                    "operator %r has %d subtasks, to which the records of %r are dealt out in turn: changes of one row "
                    "may overtake each other, and sink %r then keeps an older value of it. Write .key_by(...) with the "
                    "row's key (%s) right before %r, or leave its parallelism, or rebalance, out",
                    dealt.name,
                    sizes[dealt.position].parallelism,
                    origin.name,
                    sink.name,
                    ", ".join(map(str, sink.operator._row_key)),
                    dealt.name,
                )


def _dealt_out(sink: StreamNode, sizes: Mapping[int, Size]) -> Iterator[tuple[StreamNode, StreamNode]]:
    """The operators whose records are dealt out on their way to a sink, each with what gives the records: a source, or
    what makes records of its own by key. An operator that several ways lead through comes once for each.
    """
    todo: list[tuple[StreamNode, StreamNode | None]] = [(sink, None)]
    seen: set[tuple[int, int]] = set()
    while todo:
        node, dealt = todo.pop()
        place = node.position, -1 if dealt is None else dealt.position
        if place in seen:
            continue
        seen.add(place)
        if node is not sink and (not node.inputs or _gives_changes(node) or isinstance(node.operator, KeyedOperator)):
            if dealt is not None:
                yield dealt, node
            continue
        for edge in node.inputs:
            is_dealt = partitioning_of(edge, node, sizes) is Partitioning.REBALANCE
            todo.append((edge.source, node if is_dealt and sizes[node.position].parallelism > 1 else dealt))


def _gives_changes(node: StreamNode) -> bool:
    operator = node.operator
    return operator._changelog is not None or (isinstance(operator, Source) and operator.gives_changes)
