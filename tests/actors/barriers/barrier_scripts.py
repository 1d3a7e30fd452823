"""Scripts for barrier handlers, as a Hypothesis strategy writes them."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from understudy.actors.barriers.barrier_handler import Aborted, Aligned, GateEvent
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier, Element, EndOfPartition
from understudy.messages import CheckpointId

from ...conformance.barrier_words import Script


def triggered(events: Iterable[GateEvent]) -> list[int]:
    return [event.barrier.checkpoint_id for event in events if isinstance(event, Aligned)]


def aborted(events: Iterable[GateEvent]) -> list[int]:
    return [event.checkpoint_id for event in events if isinstance(event, Aborted)]


@st.composite
def channel_scripts(draw: st.DrawFn, channel: int) -> list[Element]:
    """One channel's elements: batches, and barriers or cancel markers with growing ids; perhaps an end."""
    elements: list[Element] = []
    checkpoint = 0
    for index, kind in enumerate(draw(st.lists(st.sampled_from("dddbbbcs"), max_size=14))):
        if kind == "d":
            elements.append([f"c{channel}-{index}", 10])
            continue
        checkpoint += 1
        if kind != "s":
            kind_of = CheckpointBarrier(CheckpointId(checkpoint), 0)
            elements.append(kind_of if kind == "b" else CancelCheckpointMarker(CheckpointId(checkpoint)))
    if draw(st.booleans()):
        elements.append(EndOfPartition())
    return elements


@st.composite
def scripts(draw: st.DrawFn, max_channels: int = 4) -> tuple[int, Script]:
    """(number of channels, an interleaving of what they deliver)."""
    channels = draw(st.integers(1, max_channels))
    waiting = {channel: list(draw(channel_scripts(channel))) for channel in range(channels)}
    script: Script = []
    while any(waiting.values()):
        channel = draw(st.sampled_from([channel for channel, elements in waiting.items() if elements]))
        script.append((channel, waiting[channel].pop(0)))
    return channels, script
