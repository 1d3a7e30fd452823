"""JobManagerSettings: what a JobManager gets when it is made. Those who read settings need not load the JobManager."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobManagerSettings:
    """All are durations; `ClusterSettings` says what each means."""

    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_timeout_ms: int
    cancel_timeout_ms: int
