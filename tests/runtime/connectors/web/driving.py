"""Drives a source that a thread feeds, as its task does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from understudy.actors.operators.source import END
from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors.fed_source import FedSource

from ..harness import make_context

WAIT_S = 60


class Driven:
    """One attempt; closed by `with`."""

    def __init__(self, source: FedSource, offset: Any = None) -> None:
        self._woken = threading.Event()
        self.source = source
        source.context = replace(make_context(), wake=self._woken.set)
        source.open()
        if offset is not None:
            source.seek(unpack_plain(pack_plain(offset)))

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def take(self, count: int) -> list[Any]:
        """Records until there are this many, or it has ended."""
        found: list[Any] = []
        while len(found) < count and (polled := self.poll(lambda each: each is not None)) is not END:
            found += polled
        return found

    def poll(self, until: Callable[[Any], bool]) -> Any:
        while not until(polled := self.source.poll()):
            assert self._woken.wait(WAIT_S), "nothing came"
            self._woken.clear()
        return polled
