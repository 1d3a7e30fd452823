"""Nodes: what elections and listeners ask of ZooKeeper, and how they see from it who leads: the queue of candidates.

Written once for the real ZooKeeper and for the simulated one; both pass one contract: tests/contracts/nodes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from .leader import Leader
from .leader_node import read_leader

Watch = Callable[[], None]

CANDIDATE = "candidate-"


class Nodes(Protocol):
    """The nodes that one session sees. All of it blocks; raises one of `NO_ANSWER` when nobody answers.

    A `watch` is called once, on any thread, when the answer that it was given with may not hold any more, and before
    anything newer is read; or when the connection breaks, as nobody watches then. It must not block.
    """

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of those below a node that is there. Watched: that one comes or goes."""
        ...

    def is_there(self, path: str, watch: Watch | None = None) -> bool:
        """Watched: that it comes, goes or changes."""
        ...

    def read(self, path: str, watch: Watch | None = None) -> bytes | None:
        """None for one that is not there, which is not watched then. Watched: that it changes or goes."""
        ...


class Place(Enum):
    """Of a candidate in the queue."""

    FIRST = auto()
    """It leads."""
    BEHIND = auto()
    """Of another one, which is watched."""
    OUT = auto()
    """Its node is gone: its session has ended."""


def by_number(children: list[str]) -> list[str]:
    """The candidates, in the order in which they have come. Other nodes do not count."""
    ours = [child for child in children if child.startswith(CANDIDATE) and child.rpartition("-")[2].isdecimal()]
    return sorted(ours, key=lambda child: int(child.rpartition("-")[2]))


def place_in_queue(nodes: Nodes, folder: str, own: str, moved: Watch) -> Place:
    """Of the candidate `own` in `folder`. While it is BEHIND, `moved` is called when the one before it has gone."""
    while True:
        queue = by_number(nodes.children(folder))
        if own not in queue:
            return Place.OUT
        place = queue.index(own)
        if place == 0:
            return Place.FIRST
        if nodes.is_there(f"{folder}/{queue[place - 1]}", moved):
            return Place.BEHIND


def who_leads(nodes: Nodes, folder: str, changed: Watch) -> Leader | None:
    """The first in the queue, if it has said where it is. `changed` is called when that may not be so any more."""
    queue = by_number(nodes.children(folder, changed))
    if not queue:
        return None
    node = f"{folder}/{queue[0]}"
    data = nodes.read(node, changed)
    if data is None:
        changed()
        return None
    return read_leader(data, f"ZooKeeper's {node}")
