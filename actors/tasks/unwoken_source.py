"""UnwokenSource: a source of the user's that returned None, says no time, and that nothing ever wakes.

A thread of its own that forgets `context.wake` would leave it asleep for ever, without a word; or, where checkpoints
come, make it go on at their pace. So until it has woken its task for the first time it is looked at once a second, and
when records were there and nothing had woken it, the log says so.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ...messages.whose_code import is_ours
from ..operators.source import Source

log = logging.getLogger("understudy.source")

LOOK_MS = 1000.0

_SURE = 2
"""Records that are found once may have come between the source's queue and its wake."""


class UnwokenSource:
    """One attempt's. From then on it stands between the source and its task's wake."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._is_trusted = is_ours(type(source))
        self._waits = False
        self._found = 0
        if not self._is_trusted:
            self._wake_task = source.context.wake
            source.context = replace(source.context, wake=self._wake)

    def _wake(self) -> None:
        """From any thread."""
        self._is_trusted = True
        self._wake_task()

    def delay_ms(self) -> float | None:
        """After `poll` returned None: when to poll again at the latest. Raises what the source does."""
        delay_ms = self._source.poll_delay_ms()
        if self._is_trusted or delay_ms is not None:
            return delay_ms
        self._waits = True
        return LOOK_MS

    def gave(self) -> None:
        """`poll` returned records, or END."""
        if self._waits and not self._is_trusted:
            self._found += 1
            if self._found == _SURE:
                log.warning(
                    "source %r: poll returned None, and had records when it was called next, without a wake() in "
                    "between: %s calls no self.context.wake() and defines no poll_delay_ms(), so poll is called once "
                    "in %g ms, or when something else wakes the task. Call self.context.wake() when something has "
                    "come, from any thread, or let poll_delay_ms(self) return in how many ms to poll again",
                    self._source.context.name,
                    type(self._source).__name__,
                    LOOK_MS,
                )
        self._waits = False
