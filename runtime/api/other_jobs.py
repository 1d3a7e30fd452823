"""Other jobs that one meets when it is submitted: of its name, of the same state, in its folders. Its log warns."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TypeAlias

from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.operator import Operator
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...messages import JobGraph, JobId, JobSubmitted
from ...messages.counted import counted
from ..connectors import FileSink, OutletSink

log = logging.getLogger(__name__)

Sinks: TypeAlias = Mapping[str, Operator]
"""By name."""

UNNAMED = "job"
"""The name of a job that was given none: several of them are nothing to warn of."""
_NAMESAKES_SHOWN = 3


def warn_of_other_jobs(
    graph: JobGraph,
    sinks: Sinks,
    submitted: JobSubmitted,
    jobs_here: Collection[JobId] | None,
    *,
    on_this_machine: bool,
) -> bool:
    """`jobs_here`: all of its cluster; None: they are not known. `on_this_machine`: its sinks write where this runs.

    Whether a job of another cluster may still write into its folders: then nothing is said of what that one has left.
    """
    if submitted.namesakes and graph.name != UNNAMED:
        log.warning(
            "job %r (%s) is not the only one of this name: %s. If they are the same program, each record is "
            "processed twice: `understudy stop ID` ends one of them with a savepoint, and `understudy cancel ID` "
            "without; else a name of its own tells them apart",
            graph.name,
            graph.job_id,
            "; ".join(submitted.namesakes[:_NAMESAKES_SHOWN]),
        )
    rivals = set[str]()
    if on_this_machine and jobs_here is not None:
        rivals = _warn_of_rivals(graph, sinks, submitted, jobs_here)
    if on_this_machine:
        _warn_of_other_output(graph, {name: sink for name, sink in sinks.items() if name not in rivals}, submitted)
    _warn_of_relatives(graph, sinks, submitted)
    return bool(rivals)


def _warn_of_relatives(graph: JobGraph, sinks: Sinks, submitted: JobSubmitted) -> None:
    """Of jobs that go on from the same state, and append to the same place, perhaps."""
    appending = [
        repr(name)
        for name, sink in sinks.items()
        if isinstance(sink, TwoPhaseCommitSink | LedgerSink) and not isinstance(sink, FileSink | OutletSink)
    ]
    for relative in submitted.relatives if appending else ():
        log.warning(
            "job %r goes on from a state that job %s has gone through too, and that job has not ended: where "
            "both write to one place (sink %s), each record comes twice. Cancel one of them, or see that they "
            "write to different places",
            graph.name,
            relative,
            ", ".join(appending),
        )


def _warn_of_rivals(graph: JobGraph, sinks: Sinks, submitted: JobSubmitted, jobs_here: Collection[JobId]) -> set[str]:
    """Of jobs of other clusters that lose their folders to this one; the names of the sinks."""
    mine = {*jobs_here, *(each.job_id for each in submitted.predecessors)}
    found = set[str]()
    for name, sink in sinks.items():
        if isinstance(sink, FileSink) and (rival := sink.rival(graph.job_id, mine)):
            found.add(name)
            log.warning(
                "sink %r: the folder %s belongs to another job, whose process runs now: %s. If that job has not ended "
                "(`understudy list`), this one takes the folder over, and it fails: end one of the two, or give each a "
                "folder of its own",
                name,
                sink.path,
                rival,
            )
    return found


def _warn_of_other_output(graph: JobGraph, sinks: Sinks, submitted: JobSubmitted) -> None:
    """Of a job whose files come beside others, which it does not go on from."""
    for name, sink in sinks.items():
        if not isinstance(sink, FileSink):
            continue
        if not (files := sink.files_of_others(graph.job_id, submitted.predecessors)):
            continue
        holds = f"sink {name!r}: {sink.path} holds {counted(files, 'file')}"
        if (origin := submitted.restored_from) is None:
            log.warning(
                "%s of earlier jobs, and this job starts from the beginning: who reads the folder reads both. Give "
                "each job a folder of its own, or go on with an earlier job by resume='latest' or from_savepoint "
                "(--resume latest, --from-savepoint on the command line)",
                holds,
            )
        else:
            log.warning(
                "%s of other jobs, or of job %s after checkpoint %d, which this job goes on from: records that "
                "come after that checkpoint may be there already, and then come twice. Move such files away, or "
                "give this job a folder of its own",
                holds,
                origin.job_id,
                origin.checkpoint_id,
            )
