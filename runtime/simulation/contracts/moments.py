"""Moments: where a thread of the connector's own can be stopped, and which of them are tried.

A place is a line of the connector's code, or a call to the outside: before it, and after. A moment is one visit of it.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from os.path import basename
from random import Random
from typing import Literal, NamedTuple

Act = Literal["kill", "checkpoint", "cancel", "freeze", "fail"]
"""What happens at a moment: "checkpoint" takes one while the thread stands there, and kills the attempt then; "fail"
lets the call to the outside fail, or its answer be lost.
"""


class Place(NamedTuple):
    file: str
    line: int
    call: str = ""
    """Before or after which call; empty: before the line."""

    def __str__(self) -> str:
        where = f"{basename(self.file)}:{self.line}"
        if self.call:
            return f"{self.call}, in {where}"
        return f"before {where}, `{linecache.getline(self.file, self.line).strip()}`"


class Moment(NamedTuple):
    place: Place
    visit: int
    """From 1, of the attempt."""

    def __str__(self) -> str:
        return f"{self.place} (visit {self.visit})"


@dataclass(frozen=True, slots=True)
class ThreadFault:
    moment: Moment
    act: Act


def chosen(seen: Mapping[Place, int], most: int, chance: Random) -> list[Moment]:
    """At most this many of the moments: first visits, last ones and those in between, as evenly as there are of them,
    and of each kind those of all places as evenly as they can be taken.
    """
    firsts = [Moment(place, 1) for place in seen]
    lasts = [Moment(place, visits) for place, visits in seen.items() if visits > 1]
    between = [Moment(place, visit) for place, visits in seen.items() for visit in range(2, visits)]
    chance.shuffle(between)
    found: list[Moment] = []
    kinds = sorted((firsts, lasts, between), key=len)
    for number, kind in enumerate(kinds):
        room = (most - len(found)) // (len(kinds) - number)
        found += [kind[at * len(kind) // room] for at in range(room)] if room < len(kind) else kind
    return found
