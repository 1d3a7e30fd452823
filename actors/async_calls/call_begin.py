"""CallBegin: what a call has when it begins, and its coroutine."""

from __future__ import annotations

from typing import Any

from ..errors import UserCodeError
from ..flow.elements import TimedBatch
from ..operators.collector import Collector
from ..operators.operator import Operator
from .call import Call, own_record
from .settings import AsyncSettings


class CallBegin:
    """Of one operator."""

    def __init__(self, operator: Operator, settings: AsyncSettings) -> None:
        self._operator = operator
        self._settings = settings
        self._is_limited = settings.timeout_ms is not None or settings.total_timeout_ms is not None
        self._gives_keys = settings.idempotency_key is not None

    def prepare(self, call: Call, now_ms: int, prefix: str) -> None:
        """For its next try, on the task's thread; `now_ms`: the time of day. Raises UserCodeError."""
        call.tries += 1
        call.again_wall_ms = 0
        if not call.began_wall_ms:
            call.began_wall_ms = now_ms
        call.out = Collector()
        call.out.time_ms = None if call.kind == "batch" else call.time_ms
        if self._is_limited:
            call.limit_ms = self._settings.limit_ms(max(now_ms - call.began_wall_ms, 0))
        if call.identity is None:
            call.prefix = prefix
            if self._gives_keys:
                call.identity = self._own_identity(call)

    def __call__(self, call: Call) -> Any:
        """On the event loop's thread, with the call as the current unit of work."""
        operator: Any = self._operator
        match call.kind:
            case "record":
                process = operator.process_2 if call.input_index else operator.process
                return process(own_record(call.record), call.out)
            case "timer":
                return operator.on_timer(call.record, call.out)
            case _:
                batch = call.record
                return operator.process_batch(batch.records if isinstance(batch, TimedBatch) else batch, call.out)

    def _own_identity(self, call: Call) -> str | None:
        """The one that the record gives. Raises UserCodeError."""
        if call.kind != "record":
            return None
        try:
            return self._settings.identity_of(call.record)
        except Exception as error:
            raise UserCodeError(self._operator.context.name, call.position) from error
