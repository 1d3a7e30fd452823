"""A TaskManager that goes on after an attempt has ended keeps nothing of it: neither its operators nor their state."""

from __future__ import annotations

import gc

import pytest

from understudy import KeyedOperator, LocalCluster, StreamEnvironment, ValueState, fixed_delay
from understudy.actors.operators.collector import Collector

from .jobs import WAIT_S

pytestmark = pytest.mark.every_run

ATTEMPTS = 4


class Failing(KeyedOperator):
    """Fails in each attempt but the last, which emits how many operators of its kind are in the process."""

    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(record)
        if self.context.attempt_number < ATTEMPTS - 1:
            raise ValueError("on purpose")
        out.collect(sum(type(each).__name__ == type(self).__name__ for each in gc.get_objects()))


class AsyncFailing(Failing):
    async def process(self, record: int, out: Collector) -> None:  # type: ignore[override]
        super().process(record, out)


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize("operator", [Failing, AsyncFailing])
def test_no_operator_of_an_attempt_that_failed_is_left_in_the_next(
    operator: type[Failing], backend: str, shared_cluster: LocalCluster
) -> None:
    env = StreamEnvironment(state_backend=backend, restart_strategy=fixed_delay(ATTEMPTS, delay_ms=500))
    numbers = env.from_collection(range(6))
    numbers.key_by(lambda number: number % 2).process(operator, parallelism=1).collect(name="operators")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert set(job.results("operators")) == {1}
