"""Questions to a JobManager: which may be put again to the next one, and what follows where an answer is lost."""

from __future__ import annotations

from ...messages import (
    AskOperator,
    CancelJob,
    CancelWithSavepoint,
    ListenToJob,
    ListHosts,
    ListJobs,
    ReadOutlet,
    RequestBackPressure,
    RequestCheckpoint,
    RequestCheckpointStatistics,
    RequestFlameGraph,
    RequestJobStatus,
    RequestKeyGroups,
    RequestLogs,
    RequestMetrics,
    RequestThreadDump,
    RequestWatermarks,
    SendToInlet,
    StopJob,
    StopWithSavepoint,
    SubmitJob,
    TriggerSavepoint,
)

REPEATABLE = (
    AskOperator,
    CancelJob,
    ListHosts,
    ListJobs,
    ListenToJob,
    ReadOutlet,
    RequestBackPressure,
    RequestCheckpointStatistics,
    RequestFlameGraph,
    RequestJobStatus,
    RequestKeyGroups,
    RequestLogs,
    RequestMetrics,
    RequestThreadDump,
    RequestWatermarks,
    SendToInlet,
    StopJob,
)
"""Questions, and what has the same effect twice as once: records that are sent have numbers."""

SOON_ANSWERED = (
    ListHosts,
    ListJobs,
    ListenToJob,
    RequestCheckpointStatistics,
    RequestJobStatus,
    RequestLogs,
    RequestMetrics,
    RequestWatermarks,
)
"""A leader that lives answers these at once."""

WHAT_FOLLOWS: dict[type, str] = {
    RequestCheckpoint: "the job goes on in any case. Ask for another checkpoint",
    TriggerSavepoint: "the job goes on in any case. Ask for another savepoint",
    CancelWithSavepoint: "the job goes on, unless it was cancelled already: `understudy list` shows it; ask again then",
    StopWithSavepoint: (
        "if the savepoint was stored, the next leader ends the job with it, and it finishes; else the job goes on as "
        "if nothing had been asked. The next JobManager's log says which"
    ),
    SubmitJob: "if `understudy list` shows the job it runs, and need not be submitted again; else submit it again",
}
"""Of an order whose answer is lost."""
