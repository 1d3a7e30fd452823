"""JobManagerSettings: what a JobManager gets when it is made. Those who read settings need not load the JobManager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEARTBEAT_INTERVAL_MS: Final = 1_000
HEARTBEAT_TIMEOUT_MS: Final = 10_000
SLOT_TIMEOUT_MS: Final = 300_000
"""As Flink's slot.request.timeout: a busy machine may take a minute to start a process."""
CANCEL_TIMEOUT_MS: Final = 30_000
ADOPTION_TIMEOUT_MS: Final = 3_000
"""These hold wherever nobody has set others."""


@dataclass(frozen=True, slots=True)
class JobManagerSettings:
    """All are durations; `ClusterSettings` says what each means."""

    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_timeout_ms: int
    cancel_timeout_ms: int
    adoption_timeout_ms: int = 0
    """How long a job that is taken over waits for TaskManagers that run it still; 0: none of them outlives a leader."""
