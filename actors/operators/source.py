"""Source: a replayable origin of batches. Its offset is operator state; implementations live in runtime/connectors."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pyarrow as pa

from ..elements import Batch
from .operator import Operator


class SourceState(Enum):
    END = "end"


END: Literal[SourceState.END] = SourceState.END
"""What `poll` returns, from then on, when a bounded source has run dry."""


class Source(Operator):
    """A source subtask. Before `open` the task gives it its share by `context.subtask_index` and `context.parallelism`.

    Contract: after `seek(offset())` the same records come again, in the same order; batch boundaries may differ.
    """

    bounded: bool = True

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        """The next batch; None when there is none yet (the source then calls `self.context.wake` when there is); or
        END.
        """
        raise NotImplementedError(f"{type(self).__name__}.poll is not defined")  # abstract

    def offset(self) -> Any:
        """Plain data: where the next `poll` reads. Recorded in the checkpoint, with the barrier."""
        raise NotImplementedError(f"{type(self).__name__}.offset is not defined")  # abstract

    def seek(self, offset: Any) -> None:
        """Continue at a recorded offset. Called after `open`, before the first `poll`; not called on a fresh start."""
        raise NotImplementedError(f"{type(self).__name__}.seek is not defined")  # abstract

    def poll_delay_ms(self) -> float | None:
        """After `poll` returned None: when to poll again at the latest; None to wait for `wake` alone."""
        return None

    def source_schema(self) -> pa.Schema | None:
        """The schema of its batches if they are columnar; None for Python records."""
        return None
