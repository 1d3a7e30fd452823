"""FakeService: an outside service for trying out coroutines, in the simulator and without it."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import cloudpickle
import pytest

from understudy import AsyncSettings, KeyedOperator, Operator, Retry, StreamEnvironment
from understudy.testing import (
    AnswerLost,
    FakeService,
    KeyReused,
    KillProcess,
    ServiceError,
    SimulatedCluster,
    assert_exactly_once,
)


def ask(service: FakeService, *requests: tuple[Any, str | None]) -> list[Any]:
    async def all_of_them() -> list[Any]:
        asked = (service.call(request, key=key) for request, key in requests)
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(all_of_them())


def service(name: str, **options: Any) -> FakeService:
    return FakeService(lambda number: 3 * number, name=name, delay_ms=(0, 1), **options)


def test_it_answers_and_has_an_effect_for_each_request() -> None:
    shop = service("shop")

    assert ask(shop, (1, None), (2, "b"), (2, None)) == [3, 6, 6]
    assert shop.effects() == {None: [1, 2], "b": [2]}
    assert shop.asked() == {None: 2, "b": 1}


def test_a_known_idempotency_key_gives_the_answer_of_the_first_request() -> None:
    tickets = iter(range(100))
    office = FakeService(lambda _: next(tickets), name="office", delay_ms=(0, 0))

    assert ask(office, ("me", "a"), ("you", "b")) == [0, 1]
    assert ask(office, ("me", "a"), ("me", None)) == [0, 2]
    assert office.effects() == {"a": ["me"], "b": ["you"], None: ["me"]}


def test_a_key_stands_for_one_request() -> None:
    bank = service("bank with keys")
    ask(bank, (1, "a"))

    (error,) = ask(bank, (2, "a"))

    assert isinstance(error, KeyReused)
    assert "came with 1, now with 2" in str(error)
    assert bank.keys_reused() == ["a"]
    assert bank.effects() == {"a": [1]}


def test_an_error_has_no_effect() -> None:
    broken = service("broken", error_rate=1.0)
    (error,) = ask(broken, (1, "a"))

    assert isinstance(error, ServiceError)
    assert error.status == 500
    assert broken.effects() == {}
    assert broken.asked() == {"a": 1}


def test_a_lost_answer_has() -> None:
    far = service("far", lost_rate=1.0)
    (error,) = ask(far, (1, "a"))

    assert isinstance(error, AnswerLost)
    assert far.effects() == {"a": [1]}


def test_what_arrives_twice_has_one_effect_with_a_key_and_two_without() -> None:
    echo = service("echo", doubled_rate=1.0)

    assert ask(echo, (1, "a"), (2, None)) == [3, 6]
    assert echo.effects() == {"a": [1], None: [2, 2]}


def test_an_answer_that_never_comes_is_ended_by_whoever_waits() -> None:
    mute = service("mute", silent_rate=1.0)

    async def impatient() -> None:
        asked = asyncio.ensure_future(mute.call(1, key="a"))
        while not mute.effects():  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(impatient())
    assert mute.effects() == {"a": [1]}


def test_too_many_requests_are_refused_with_when_to_come_again() -> None:
    small = service("small", throttle=2)
    answers = ask(small, *((number, str(number)) for number in range(5)))

    refused = [each for each in answers if isinstance(each, ServiceError)]
    assert len(refused) == 3
    assert {(each.status, each.retry_after_ms) for each in refused} == {(429, 500.0)}
    assert len(small.effects()) == 2


def test_the_same_call_has_the_same_luck() -> None:
    def outcomes(name: str) -> list[str]:
        lucky = service(name, error_rate=0.3, lost_rate=0.3, seed=name == "other")
        return [type(each).__name__ for each in ask(lucky, *((number, f"key {number}") for number in range(30)))]

    first = outcomes("one")
    assert set(first) == {"int", "ServiceError", "AnswerLost"}
    assert outcomes("other") != first


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"error_rate": 1.5}, "error_rate: wanted a share from 0 to 1"),
        ({"lost_rate": -0.1}, "lost_rate: wanted a share"),
        ({"delay_ms": (5, 1)}, "delay_ms: wanted"),
        ({"throttle": 0}, "throttle: wanted"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        FakeService(abs, **options)


def test_it_is_the_same_service_after_pickling() -> None:
    asked = FakeService(abs, name="pickled", delay_ms=(0, 0))
    ask(asked, (-1, "a"))
    again = pickle.loads(cloudpickle.dumps(asked))

    assert ask(again, (-1, "a")) == [1]
    assert asked.asked() == {"a": 2}


# ---- in the simulator

PRICES = FakeService(lambda article: 3 * article, name="prices", error_rate=0.2, lost_rate=0.1, doubled_rate=0.1)


class Priced(Operator):
    async_settings = AsyncSettings(max_in_flight=5, retry=Retry(attempts=50, first_delay_ms=10, max_delay_ms=200))

    async def process(self, article: int, out: Any) -> None:
        out.collect((article, await PRICES.call(article, key=self.idempotency_key)))


def priced() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=500)
    env.from_collection(range(60), records_per_second=20).rebalance().process(Priced).collect(name="out")
    return env


def test_its_ledger_outlives_the_processes_and_ends_with_the_world() -> None:
    for seed in (1, 1):
        with SimulatedCluster(2, 1, seed=seed, faults=[KillProcess(1_500.0, 0), KillProcess(2_700.0, 1)]) as cluster:
            assert PRICES.effects() == {}
            job = cluster.submit(priced())
            job.wait()
            effects = PRICES.effects()
            assert sorted(job.results("out")) == [(number, 3 * number) for number in range(60)]
            assert {request for requests in effects.values() for request in requests} == set(range(60))
            assert all(len(requests) == 1 for requests in effects.values())
            assert PRICES.keys_reused() == []


def test_a_seed_is_one_history_with_its_answers_too() -> None:
    def ledger(seed: int) -> Any:
        with SimulatedCluster(2, 1, seed=seed, faults=[KillProcess(1_500.0, 0)]) as cluster:
            cluster.submit(priced()).wait()
            return PRICES.asked(), PRICES.effects(), cluster.now_ms

    assert ledger(3) == ledger(3)
    assert ledger(3) != ledger(4)


def test_a_job_that_asks_it_survives() -> None:
    assert_exactly_once(priced, histories=3, expected=[(number, 3 * number) for number in range(60)])


class KeyInAnAttribute(KeyedOperator):
    """Its total is in an attribute, and it has waited between reading and writing it."""

    async def process(self, article: int, out: Any) -> None:
        total = getattr(self, "total", 0)
        total += await PRICES.call(article, key=self.idempotency_key)
        self.total = total
        out.collect((self.key, total))


def test_a_job_that_forgets_does_not() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=500)
        keyed = env.from_collection(range(40), records_per_second=20).key_by(lambda number: number % 2)
        retried = keyed.process(KeyInAnAttribute).async_settings(retry=Priced.async_settings.retry)
        retried.collect(name="out")
        return env

    with pytest.raises(AssertionError, match=r"exactly-once|unrepeatable|nothing-extra"):
        assert_exactly_once(build, histories=20)
