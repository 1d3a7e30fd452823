"""Makes what runs the coroutines of an operator, with permits if it has a rate."""

from __future__ import annotations

from collections.abc import Callable

from ...messages import ReportThrottled, RequestPermits
from ...state.backends.shared_backend import SharedBackend
from ..operators.operator import Operator
from .async_calls import AsyncCalls
from .event_loop import CallLoop
from .permits import Permits
from .retry import Retry
from .settings import AsyncSettings


def async_calls(
    operator: Operator, backend: SharedBackend, host: CallLoop, delay_ms: Callable[[Retry, int], float]
) -> AsyncCalls:
    """What runs the coroutines of an operator that has been placed."""
    settings = operator.async_settings or AsyncSettings()
    permits = None
    if settings.rate_per_second is not None:
        where, tell = operator.context, operator.context.report
        permits = Permits(
            lambda count: tell(RequestPermits(where.job_id, where.attempt_id, where.operator_id, count)),
            lambda ms: tell(ReportThrottled(where.job_id, where.attempt_id, where.operator_id, ms)),
        )
    return AsyncCalls(operator, settings, backend, host, delay_ms, permits)
