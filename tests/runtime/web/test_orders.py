"""Orders of an app that several threads serve, each with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from understudy.messages import TriggerSavepoint, TriggerSavepointSuccess
from understudy.runtime.web.jobs import Desk
from understudy.runtime.web.orders import Orders

from .views import JOB

WAIT_S = 60
TRIGGER = "0123456789abcdef" * 2


class HeldDesk(Desk):
    """The first order stands still on its way to the JobManager, until another one comes, or none for a moment."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.ordered: list[Any] = []
        self.first, self.second = threading.Event(), threading.Event()

    def ask(self, message: Any, timeout_ms: float | None = None) -> Awaitable[Any]:  # type: ignore[override]
        self.ordered.append(message)
        if len(self.ordered) == 1:
            self.first.set()
            self.second.wait(0.5)
        else:
            self.second.set()

        async def answer() -> TriggerSavepointSuccess:
            return TriggerSavepointSuccess(JOB, "/savepoints/one")

        return answer()


def test_an_order_that_is_sent_twice_at_once_is_one_order() -> None:
    desk = HeldDesk()
    orders = Orders(desk)

    def order() -> str:
        return asyncio.run(orders.savepoint(JOB, {"triggerId": TRIGGER}))

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(order)
        assert desk.first.wait(WAIT_S)
        other = threads.submit(order)
        assert one.result(WAIT_S) == other.result(WAIT_S) == TRIGGER
    assert desk.ordered == [TriggerSavepoint(JOB, None)]
