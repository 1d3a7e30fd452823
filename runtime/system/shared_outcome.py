"""The outcome of a future that others wait for, too."""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def outcome_of(future: asyncio.Future[T]) -> T:
    """Wait without cancelling it when the waiting is cancelled: as `asyncio.shield`, which from Python 3.14 on logs the
    error of a future whose waiting was cancelled, even if somebody has taken it.
    """
    await asyncio.wait({future})
    return future.result()
