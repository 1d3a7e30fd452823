"""barrier_buffer.json: the aligning BarrierHandler, fed as it comes, and by a gate that reads no blocked channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aborted, GateEvent
from understudy.actors.flow.elements import Element
from understudy.messages import AbortReason

from .barrier_words import Script, compare_events, is_emission, script_of
from .scenario import Difference, Scenario, Words, compare, scenarios_of

KEYS = frozenset({"max_buffered_bytes", "bytes_set_aside", "close_after_outputs"})
"""Words that only this schema has."""


def scenarios(document: Words) -> Iterator[Scenario]:
    return scenarios_of(document, "scenarios", _play)


def _play(words: Words) -> Iterator[Difference]:
    """`bytes_set_aside` is not compared: our gate reads no blocked channel, so it sets nothing aside, and has no limit.
    Where a scenario has one, the alignment that passes it is given up from outside; what comes out then is compared.
    """
    script = script_of(words)
    if words.get("max_buffered_bytes") is not None:
        yield from compare_events(words, _feed_up_to(words["max_buffered_bytes"], _make(words), script))
        return
    events, probed = _feed(words, script)
    yield from compare_events(words, events)
    yield from probed
    if words.get("close_after_outputs") is not None:
        yield from _close_early(words, script)
    unread = play_as_gate(_make(words), script)
    for each in compare_events(words, unread):
        yield Difference(f"gate: {each.where}", each.expected, each.found)


def _make(words: Words) -> BarrierBuffer:
    return BarrierBuffer(words["channels"])


def play_as_gate(buffer: BarrierBuffer, script: Script) -> list[GateEvent]:
    """Always feed the oldest element of a channel that is not blocked. Flink 1.11+: a blocked channel is not read."""
    waiting, events = list(script), list[GateEvent]()
    while readable := [item for item in waiting if not buffer.is_blocked(item[0])]:
        waiting.remove(readable[0])
        events += buffer.receive(*readable[0])
    return events


def _feed_up_to(limit: int, buffer: BarrierBuffer, script: Script) -> list[GateEvent]:
    """All events, with each alignment given up that has set aside more bytes than this."""
    events = list[GateEvent]()
    for channel, element in script:
        events += buffer.receive(channel, element)
        while sum(map(_size_of, buffer.set_aside())) > limit:
            events += map(_as_limit, buffer.abort(buffer.current_checkpoint_id))
    return events


def _size_of(item: tuple[int, Element]) -> int:
    match item:
        case (_, [_, int(size)]):
            return size
    return 0


def _as_limit(event: GateEvent) -> GateEvent:
    is_given_up = isinstance(event, Aborted) and event.reason is AbortReason.GIVEN_UP
    return replace(event, reason=AbortReason.LIMIT_EXCEEDED) if is_given_up else event


class _Watched(BarrierBuffer):
    """A consumer in Flink takes outputs one by one; here one element may release many. So this one says what its state
    was with each element that it let through.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.states: list[Words] = []
        self._all = channels

    def receive(self, channel: int, element: Element) -> list[GateEvent]:
        known = len(self.states)
        events = super().receive(channel, element)
        emitted = sum(map(is_emission, events)) - (len(self.states) - known)
        self.states += [_state(self, self._all)] * emitted  # what passes an open channel is not looked at any further
        return events

    def _take(self, channel: int, element: Element, events: list[GateEvent]) -> None:
        known = len(events)
        super()._take(channel, element, events)
        self.states += [_state(self, self._all)] * sum(map(is_emission, events[known:]))


def _feed(words: Words, script: Script) -> tuple[list[GateEvent], list[Difference]]:
    """All events, and how the probes differ on the way."""
    buffer, probes = _Watched(words["channels"]), words.get("probes") or []
    events, differences = list[GateEvent](), list[Difference]()
    for index, (channel, element) in enumerate(script):
        emitted = len(buffer.states)
        events += buffer.receive(channel, element)
        for probe in probes:
            if probe.get("after_input") == index:
                differences += _compare_probe(probe, _state(buffer, words["channels"]))
            if emitted < probe.get("after_outputs", 0) <= len(buffer.states):
                differences += _compare_probe(probe, buffer.states[probe["after_outputs"] - 1])
    return events, differences


def _state(buffer: BarrierBuffer, channels: int) -> Words:
    blocked = [channel for channel in range(channels) if buffer.is_blocked(channel)]
    return {"current_checkpoint": buffer.current_checkpoint_id, "blocked_channels": blocked}


def _compare_probe(probe: Words, state: Words) -> Iterator[Difference]:
    where = f"probe after {' '.join(f'{key} {value}' for key, value in probe.items() if key.startswith('after'))}"
    for name in state.keys() & probe.keys():
        wanted = sorted(probe[name]) if name == "blocked_channels" else probe[name]
        yield from compare(f"{where}: {name}", wanted, state[name])


def _close_early(words: Words, script: Script) -> Iterator[Difference]:
    """The consumer stops after so many outputs and closes the handler: nothing may be kept."""
    buffer, emitted = _make(words), 0
    for channel, element in script:
        if emitted >= words["close_after_outputs"]:
            break
        emitted += sum(map(is_emission, buffer.receive(channel, element)))
    buffer.close()
    yield from compare("set aside after close", (), buffer.set_aside())
    yield from compare("blocked after close", [], _state(buffer, words["channels"])["blocked_channels"])
