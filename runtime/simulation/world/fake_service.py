"""FakeService: an outside service that coroutines ask, on a bad day. One per name and world.

    prices = FakeService(lambda article: 3 * article, delay_ms=(5, 80), error_rate=0.05, lost_rate=0.05)

    class Priced(Operator):
        async def process(self, article, out):
            out.collect((article, await prices.call(article, key=self.idempotency_key)))

A request that it has done is an *effect*: it stands in a ledger that outlives every process and restart of its world,
as the books of a payment service do. It honours idempotency keys: to a request whose key it knows it gives the answer
of the first one, and does nothing. An object of this class holds no more than its settings, so it may be pickled with
an operator. In the simulator chance goes by the world's seed, the key, and how often the key was used; time is virtual,
and the process that asks may be killed before it has sent the request, and before it has the answer. Elsewhere time is
real, chance goes by `seed`, and the ledger is that of the Python process.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from time import monotonic
from typing import Any, Final, NoReturn
from weakref import WeakKeyDictionary

from .disk import SimulatedDisk
from .file_system import current_disk
from .process import Process

_SECOND_MS: Final = 1000.0


class ServiceError(Exception):
    """A FakeService has answered with an error: `status` is 500, and 429 where there were too many requests."""

    status = 500
    retry_after_ms: float | None = None


class AnswerLost(ServiceError, ConnectionError):
    """The connection broke. The request may have had its effect; nobody knows."""


class KeyReused(ServiceError, ValueError):
    """One idempotency key came with two different requests."""

    status = 422


@dataclass(slots=True)
class _Ledger:
    effects: dict[str | None, list[Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)
    asked: Counter[str | None] = field(default_factory=Counter)
    reused: list[str] = field(default_factory=list)
    recent_ms: deque[float] = field(default_factory=deque)


_worlds: WeakKeyDictionary[SimulatedDisk, dict[str, _Ledger]] = WeakKeyDictionary()
_here: dict[str, _Ledger] = {}
_lock = Lock()
"""Outside of all worlds, coroutines of several threads may ask at a time."""


class FakeService:
    """See the module. Raises ValueError for a share that is none, and a delay that cannot be."""

    def __init__(
        self,
        answer: Callable[[Any], Any],
        *,
        name: str = "service",
        delay_ms: tuple[float, float] = (5, 80),
        error_rate: float = 0.0,
        lost_rate: float = 0.0,
        silent_rate: float = 0.0,
        doubled_rate: float = 0.0,
        throttle: int | None = None,
        seed: int = 0,
    ) -> None:
        """`answer(request)` is called once for each effect. Shares of the requests:

        `error_rate`: refused with a ServiceError, without an effect; `lost_rate`: done, and AnswerLost instead of the
        answer; `silent_rate`: done, and never answered, so that only a timeout ends it; `doubled_rate`: they arrive
        twice, as by way of a proxy that repeats them. `throttle`: more requests in a second get the status 429.
        """
        shares = {
            "error_rate": error_rate,
            "lost_rate": lost_rate,
            "silent_rate": silent_rate,
            "doubled_rate": doubled_rate,
        }
        for setting, share in shares.items():
            if not 0 <= share <= 1:
                raise ValueError(f"FakeService: {setting}: wanted a share from 0 to 1, found {share!r}")
        low, high = delay_ms
        if not 0 <= low <= high:
            raise ValueError(f"FakeService: delay_ms: wanted (least, most) in ms, found {delay_ms!r}")
        if throttle is not None and throttle < 1:
            raise ValueError(f"FakeService: throttle: wanted how many requests a second, found {throttle!r}")
        self.name = name
        self._answer = answer
        self._delay_ms = delay_ms
        self._shares = shares
        self._throttle = throttle
        self._seed = seed

    async def call(self, request: Any, key: str | None = None) -> Any:
        """Its answer to the request. Raises ServiceError."""
        process = _process()
        _operate(process, self.name, "asks", request, key)
        with _lock:
            ledger = self._ledger()
            ledger.asked[key] += 1
            chance = self._chance(process, ledger, request, key)
        wait_s = chance.uniform(*self._delay_ms) / 1000
        there_s = wait_s * chance.random()
        await asyncio.sleep(there_s)
        outcome = self._outcome(chance)
        with _lock:
            answer = self._arrive(ledger, outcome, request, key)
        if outcome == "silent_rate":
            await asyncio.Event().wait()
        await asyncio.sleep(wait_s - there_s)
        _operate(process, self.name, "answers", request, key)
        if outcome == "lost_rate":
            raise AnswerLost(f"service {self.name!r}: the connection broke before the answer to {request!r:.60}")
        return answer

    def effects(self) -> dict[str | None, list[Any]]:
        """The requests that had an effect, by idempotency key; under None those that came without one."""
        with _lock:
            return {key: list(requests) for key, requests in self._ledger().effects.items()}

    def asked(self) -> Counter[str | None]:
        """How often it was asked, by idempotency key."""
        with _lock:
            return Counter(self._ledger().asked)

    def keys_reused(self) -> list[str]:
        """The idempotency keys that came with more than one request."""
        with _lock:
            return list(self._ledger().reused)

    # ---- inside

    def _arrive(self, ledger: _Ledger, outcome: str, request: Any, key: str | None) -> Any:
        if self._is_too_much(ledger):
            self._refuse(429, f"more than {self._throttle} requests a second", _SECOND_MS / (self._throttle or 1))
        if outcome == "error_rate":
            self._refuse(500, f"no answer to {request!r:.60}")
        for _ in range(2 if outcome == "doubled_rate" else 1):
            answer = self._do(ledger, request, key)
        return answer

    def _do(self, ledger: _Ledger, request: Any, key: str | None) -> Any:
        if key is not None and key in ledger.answers:
            first = ledger.requests[key]
            if first != request:
                ledger.reused.append(key)
                raise KeyReused(f"service {self.name!r}: key {key!r} came with {first!r:.60}, now with {request!r:.60}")
            return ledger.answers[key]
        answer = self._answer(request)
        ledger.effects.setdefault(key, []).append(request)
        if key is not None:
            ledger.answers[key], ledger.requests[key] = answer, request
        return answer

    def _refuse(self, status: int, why: str, retry_after_ms: float | None = None) -> NoReturn:
        error = ServiceError(f"service {self.name!r}: {status}, {why}")
        error.status, error.retry_after_ms = status, retry_after_ms
        raise error

    def _outcome(self, chance: Random) -> str:
        drawn = chance.random()
        for name, share in self._shares.items():
            drawn -= share
            if drawn < 0:
                return name
        return ""

    def _is_too_much(self, ledger: _Ledger) -> bool:
        if self._throttle is None:
            return False
        process, recent = _process(), ledger.recent_ms
        now_ms = monotonic() * 1000 if process is None else process.world.now_ms
        while recent and recent[0] <= now_ms - _SECOND_MS:
            recent.popleft()
        if len(recent) >= self._throttle:
            return True
        recent.append(now_ms)
        return False

    def _chance(self, process: Process | None, ledger: _Ledger, request: Any, key: str | None) -> Random:
        purpose = f"{self.name}/{request!r}/{key}/{ledger.asked[key]}"
        return Random(f"{self._seed}/{purpose}") if process is None else process.world.chance(purpose)

    def _ledger(self) -> _Ledger:
        return _ledgers().setdefault(self.name, _Ledger())


def _ledgers() -> dict[str, _Ledger]:
    disk = _disk()
    return _here if disk is None else _worlds.setdefault(disk, {})


def _disk() -> SimulatedDisk | None:
    try:
        return current_disk()
    except RuntimeError:
        return None


def _process() -> Process | None:
    """Whose code runs, in a simulated world."""
    disk = _disk()
    owner = None if disk is None else disk.owner()
    return owner if isinstance(owner, Process) else None


def _operate(process: Process | None, name: str, does: str, request: Any, key: str | None) -> None:
    if process is not None:
        process.operate()
        process.world.trace.add(process.name, "service", f"{name} {does}", request, key)
