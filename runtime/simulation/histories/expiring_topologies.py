"""A job whose state expires by event time. What is gone, and what is there, is the same in every history.

A number's entry is there when the key's next number comes, since event time has not come so far; and it is gone when
event time has: a timer looks then. Processing time has no such moments: when a record comes is chance.
"""

from __future__ import annotations

from ....actors.operators.collector import Collector
from ....actors.operators.timers import KeyedTimer
from ....state import MapState, Ttl, ValueState
from ...api.environment import StreamEnvironment
from .event_times import DISORDER_MS, TICK_MS, timed
from .keyed_numbers import by_key, with_keys
from .theme_parts import ALL_KEYS
from .timed_topologies import Watching
from .topologies import OUTPUT, Topology, Workload, by_name, environment, one_source

TTL_MS = ALL_KEYS * TICK_MS + DISORDER_MS + 1
"""So far apart, or less, are the times of a key's numbers that follow each other: there are no more keys than these."""

_GONE, _THERE = "gone", "still there"
"""What must not be."""


class Expiring(Watching):
    """(key, number) when the number has expired."""

    entries = MapState(int, int, ttl=Ttl(TTL_MS, clock="event"))
    last = ValueState(int, ttl=Ttl(TTL_MS, clock="event"))

    def __init__(self, keys: int) -> None:
        self._step = keys

    def process(self, number: int, out: Collector) -> None:
        self.look_at_record(number, out)
        before = number - self._step
        if before >= 0 and (self.entries.get(before) is None or self.last.value() != before):
            out.collect((_GONE, self.key, before))
        self.entries.put(number, number)
        self.last.update(number)
        # An older time does not make what is there older: the last one's may be that of the one before it.
        for delay_ms in (0, DISORDER_MS):
            self.timers.at_event_time(self.timestamp + TTL_MS + delay_ms, (number, delay_ms))

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.look_at_timer(timer, out)
        number, delay_ms = timer.namespace
        if delay_ms:
            is_there = self.last.value() == number
        else:
            is_there = self.entries.get(number) is not None or number in list(self.entries.keys())
            out.collect((self.key, number))
        if is_there:
            out.collect((_THERE, self.key, number))


def _expiring(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keyed = by_key(timed(one_source(env, workload)), workload)
    keyed.process(Expiring(workload.keys), name="expiring").collect(name=OUTPUT)
    return env


EXPIRING = by_name(Topology("expiring", _expiring, with_keys, tells_at_the_end=True))
