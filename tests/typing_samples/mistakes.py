"""What a type checker reports to a user: each line that says WRONG, and no other. See tests/test_types_for_users.py."""

from __future__ import annotations

from typing import Any

from understudy import (
    Collector,
    IndexShare,
    JobHandle,
    KeyedOperator,
    ListState,
    LocalCluster,
    RemoteCluster,
    StreamEnvironment,
    TwoPhaseCommitSink,
    ValueState,
    fixed_delay,
)
from understudy.testing import KillProcess, OperatorHarness, assert_exactly_once


class Total(KeyedOperator):
    total = ValueState(int, default=0)
    page = ValueState(str)
    pages = ListState(str)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update("seven")  # WRONG: of another type
        total: str = self.total.value()  # WRONG: an int
        shouted = self.page.value().upper()  # WRONG: without a default it may be None
        self.pages.add(7)  # WRONG: a list of texts
        out.collect(total, shouted)  # WRONG: one record


class Ledger(TwoPhaseCommitSink[str]):
    def commit(self, transaction: int) -> None: ...  # WRONG: its transactions are texts


async def run(job: JobHandle, client: RemoteCluster, env: StreamEnvironment) -> None:
    job.trigger_savepoint().get(timeout=5)  # WRONG: it is result, as in concurrent.futures
    path: int = job.trigger_savepoint().result(timeout=5)  # WRONG: a text
    job.ask("total", message="all", wait=5)  # WRONG: wait_ms
    await job.details_async(time=5)  # WRONG: timeout
    await client.find_async(7)  # WRONG: a text
    env.from_collection([1]).process(42)  # WRONG: no operator
    LocalCluster(2).submit(env.from_collection([1]))  # WRONG: the environment, and not a stream
    fixed_delay(delay=5)  # WRONG: delay_ms
    IndexShare.fresh("0", path)  # WRONG: a number
    job.on_event(print, print)  # WRONG: one callback at a time


def test_totals() -> None:
    KillProcess("tm-0")  # WRONG: when, and the number of the TaskManager
    assert_exactly_once(StreamEnvironment, histories="10")  # WRONG: a number
    OperatorHarness(Total(), keys="customer")  # WRONG: key_by
