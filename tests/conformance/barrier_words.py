"""The notation of barrier_buffer.json and barrier_tracker.json: words to elements, events to words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from understudy.actors.barriers.barrier_handler import Aborted, Aligned, GateEvent
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier, Element, EndOfPartition
from understudy.messages import CheckpointId

from .scenario import Difference, UnknownWord, Words, compare

Script = list[tuple[int, Element]]


def script_of(words: Words) -> Script:
    """A scenario's input: (channel, element) in the order of arrival."""
    channels = words["channels"]
    for channel, word in words["input"]:
        if channel not in range(channels):
            raise UnknownWord(f"channel {channel} of {channels} delivers {word}")
    return [(channel, element_of(word)) for channel, word in words["input"]]


def element_of(word: Words) -> Element:
    """`{data, size}` becomes the batch `[id, size]`; `end` is the end of the channel itself."""
    match word:
        case {"data": name}:
            return [name, word.get("size", 0)]
        case {"barrier": checkpoint}:
            return CheckpointBarrier(CheckpointId(checkpoint), 0)
        case {"cancel": checkpoint}:
            return CancelCheckpointMarker(CheckpointId(checkpoint))
        case {"end": True}:
            return EndOfPartition()
    raise UnknownWord(f"found the element {word}; wanted data, barrier, cancel or end")


def word_of(event: GateEvent) -> Words:
    match event:
        case Aligned(barrier):
            return {"checkpoint": barrier.checkpoint_id}
        case Aborted(checkpoint_id, reason):
            return {"abort": checkpoint_id, "reason": reason.value}
        case (channel, EndOfPartition()):
            return {"end": True, "channel": channel}
        case (channel, [name, _]):
            return {"data": name, "channel": channel}
    raise UnknownWord(f"no word for the event {event}")


def is_emission(event: GateEvent) -> bool:
    return isinstance(event, tuple)


def emissions(words: Iterable[Words]) -> list[str]:
    """Words of events without the listener's calls: data ids, and `end:<channel>`."""
    return [word.get("data", f"end:{word.get('channel')}") for word in words if "channel" in word]


def compare_events(expected: Words, events: Sequence[GateEvent]) -> Iterator[Difference]:
    """The facts that both kinds of handler share; those that a scenario leaves out are not compared."""
    found = [word_of(event) for event in events]
    facts = {
        "expected_output": found,
        "expected_emission": emissions(found),
        "expected_checkpoints_triggered": [word["checkpoint"] for word in found if "checkpoint" in word],
        "expected_aborted": [{"id": word["abort"], "reason": word["reason"]} for word in found if "abort" in word],
    }
    for name, fact in facts.items():
        if name in expected:
            yield from compare(name, expected[name], fact)
