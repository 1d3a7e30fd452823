"""Watch: an actor that notices the end of another one, as of a JobManager, which is not supposed to end by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...actors.actor import Actor, Terminated
from ...actors.context import Ref


class Watch(Actor):
    """Calls `ended` with the reason, once, on the system's loop."""

    def __init__(self, watched: Ref, ended: Callable[[str], None]) -> None:
        self._watched = watched
        self._ended = ended

    def on_start(self) -> None:
        self.context.watch(self._watched)

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Terminated):
            self._ended(message.reason)
