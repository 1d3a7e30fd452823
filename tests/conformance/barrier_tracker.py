"""barrier_tracker.json: the counting BarrierHandler."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.actors.barriers.barrier_tracker import BarrierTracker

from .barrier_words import compare_events, script_of
from .scenario import Difference, Scenario, Words, compare, scenarios_of

KEYS = frozenset({"pending_at_end"})
"""Words that only this schema has."""


def scenarios(document: Words) -> Iterator[Scenario]:
    return scenarios_of(document, "scenarios", _play)


def _play(words: Words) -> Iterator[Difference]:
    tracker = BarrierTracker(words["channels"])
    events = [event for channel, element in script_of(words) for event in tracker.receive(channel, element)]
    yield from compare_events(words, events)
    if words.get("pending_at_end") is not None:
        yield from compare("pending_at_end", words["pending_at_end"], list(tracker.pending))
