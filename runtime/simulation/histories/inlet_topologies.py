"""Topologies whose records are sent into the running job, by senders that die, begin again and repeat themselves.

What a sender sends as its number n is the pair of its name and n. So what must come out does not depend on who sent it
how often: of each sender all numbers, each once and right behind the one before. That nothing is lost that was
acknowledged shows earlier, too: whoever asks for the last number hears no lower one than was acknowledged before.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....actors.actor import Actor
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....messages import StopJob
from ....state import ValueState
from ...api.environment import StreamEnvironment
from ...clusters.inlet import Inlet, InletWay, way_into
from ...clusters.job_errors import InletClosed
from ...clusters.job_handle import JobHandle
from ...clusters.sent import Sent
from ..world.cluster import SimulatedCluster
from .topologies import OUTPUT, Topology, Workload, by_name, environment

_INLET = "numbers"
_SENDERS = 3
_MOST_OPEN = 6
"""A sender waits when it has no answer of this number of calls."""
_DEATHS = 0.04
"""Share of a sender's turns before which it dies and begins again."""
_SCHEMA = pa.schema([("sender", pa.string()), ("number", pa.int64())])


class Behind(KeyedOperator):
    """(sender, number, the number that came before it)."""

    before = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        out.collect((self.key, record.number, self.before.value()))
        self.before.update(record.number)


@dataclass(frozen=True, slots=True)
class _Turn:
    pass


class SimulatedSender(Actor):
    """Sends all its numbers; `done` is called once when all are acknowledged, and `lost` with what went wrong."""

    def __init__(
        self,
        name: str,
        total: int,
        way: Callable[[], InletWay],
        chance: random.Random,
        pause_ms: float,
        done: Callable[[], None],
        lost: Callable[[str], None],
    ) -> None:
        self._name = name
        self._total = total
        self._way = way
        self._chance = chance
        self._pause_ms = pause_ms
        self._done = done
        self._lost = lost
        self._open: deque[Sent] = deque()
        self._acknowledged = 0
        self._inlet: Inlet
        self._asked: Sent | None = None
        self._next = 0

    def on_start(self) -> None:
        self._begin()
        self.context.schedule(self._chance.uniform(0, self._pause_ms), _Turn())

    def on_receive(self, message: Any) -> None:
        try:
            is_done = self._turn()
        except InletClosed:  # its job is over
            return
        if is_done:
            self._done()
        else:
            self.context.schedule(self._chance.uniform(0.5, 1.5) * self._pause_ms, _Turn())

    def _begin(self) -> None:
        """As a process does that knows nothing but its name."""
        self._open.clear()
        self._inlet = Inlet(self._way(), self._name)
        self._asked = self._inlet.last_number()

    def _turn(self) -> bool:
        """Whether all is done."""
        if self._chance.random() < _DEATHS:
            self._begin()
            return False
        if self._asked is not None:
            if not self._asked.done():
                return False
            last, self._asked = self._asked.result(), None
            if last < self._acknowledged:
                self._lost(f"{self._name}: {self._acknowledged} was acknowledged, and now the last number is {last}")
            self._next = max(1, last + 1 - self._chance.choice((0, 0, 1, 2)))
        while self._open and self._open[0].done():
            self._acknowledged = max(self._acknowledged, self._open.popleft().result())
        if self._next <= self._total and len(self._open) < _MOST_OPEN:
            self._send(self._chance.choice((1, 1, 2, 4)))
        return self._next > self._total and not self._open

    def _send(self, count: int) -> None:
        first, self._next = self._next, min(self._next + count, self._total + 1)
        records = [self._record(number) for number in range(first, self._next)]
        match self._chance.randrange(3):
            case 0:
                numbers = range(first, self._next)
                self._open.extend(self._inlet.send(self._record(number), number=number) for number in numbers)
            case 1:
                self._open.append(self._inlet.send_many(records, number=first))
            case _:
                batch = pa.RecordBatch.from_pylist(records, schema=_SCHEMA)
                self._open.append(self._inlet.send_batch(batch, number=first))

    def _record(self, number: int) -> dict[str, Any]:
        return {"sender": self._name, "number": number}


def _feed(cluster: SimulatedCluster, job: JobHandle, workload: Workload) -> None:
    """Each sender in a process of its own, or all in one."""
    chance = cluster.world.chance(f"senders into {job.job_id}")
    system, job_manager = cluster._system, cluster._job_manager
    assert system is not None
    assert job_manager is not None
    left = set(_totals(workload))

    def own_way() -> InletWay:
        return way_into(job._client, job._graph, job._operators, _INLET)

    shared = own_way() if chance.random() < 0.5 else None
    for name, total in _totals(workload).items():

        def done(name: str = name) -> None:
            left.discard(name)
            if not left:
                job_manager.tell(StopJob(job.job_id))

        way = (lambda shared=shared: shared) if shared is not None else own_way
        pause_ms = 1000 * _SENDERS / workload.records_per_second
        own = cluster.world.chance(f"sender {name} into {job.job_id}")
        lost = lambda problem: cluster.probes.report("nothing-acknowledged-is-lost", problem)  # noqa: E731
        system.spawn(SimulatedSender(name, total, way, own, pause_ms, done, lost))


def _totals(workload: Workload) -> dict[str, int]:
    """How many records of each sender there are."""
    return {f"sender-{index}": len(range(index, workload.records, _SENDERS)) for index in range(_SENDERS)}


def _build(workload: Workload, schema: pa.Schema | None) -> StreamEnvironment:
    env = environment(workload)
    numbers = env.from_inlet(_INLET, schema=schema, parallelism=workload.parallelism)
    numbers.key_by("sender").process(Behind, name="behind").collect(name=OUTPUT)
    return env


def _expected(workload: Workload) -> list[tuple[str, int, int]]:
    return [(name, number, number - 1) for name, total in _totals(workload).items() for number in range(1, total + 1)]


INLETS = by_name(
    Topology("inlet", lambda work: _build(work, None), _expected, feed=_feed),
    Topology("inlet-columns", lambda work: _build(work, _SCHEMA), _expected, feed=_feed),
)
