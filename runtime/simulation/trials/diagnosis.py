"""Diagnosis: why a history went wrong, as far as more runs of its seed can say. Asked before anything is reported.

A seed that gives another outcome when it is run again unchanged has no story worth telling: the job itself changes from
run to run. One that goes wrong without faults and savepoints needs none of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ....messages import JobStatus
from ...oracles import multiset
from ..world.faults import (
    CutConnections,
    Fault,
    FreezeProcess,
    Partition,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
)
from .committed_output import Output
from .tried import Tried

_TIMING = (CutConnections, FreezeProcess, Partition, SlowFiles, SlowLink, SlowProcess, SlowStorage)
"""Faults that make things come later and change nothing, as long as nobody has to be restored."""

_COMPARING = ("exactly-once", "at-least-once")
"""Oracles that compare the output."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`again`: the same history once more. `calm`: the same seed with no fault and no savepoint."""

    failed: Tried
    again: Tried
    calm: Tried

    @property
    def is_repeatable(self) -> bool:
        return difference(self.failed, self.again) is None

    @property
    def needs_faults(self) -> bool:
        return not self.calm.violations


def difference(one: Tried, other: Tried) -> str | None:
    """How two runs of one history differ in what they have committed or in how they have ended; None if they do not."""
    if (told := output_difference(one.output, other.output)) is not None:
        return told
    if one.status != other.status:
        return f"the job ended {one.status} first and then {other.status}"
    return None


def output_difference(one: Output, other: Output) -> str | None:
    """The first records, by sink, that only one of two outputs has."""
    for name in (*one, *(name for name in other if name not in one)):
        first, then = multiset(one.get(name, [])), multiset(other.get(name, []))
        if first != then:
            return f"sink {name!r} has committed {_shown(first - then)} first and {_shown(then - first)} then"
    return None


def is_order(tried: Tried) -> bool:
    """Whether another order of what arrives is the only thing that can have gone wrong: nothing was restored, no
    checkpoint failed, and every fault only made something come later.
    """
    return (
        tried.status == JobStatus.FINISHED.value
        and tried.violations[0].oracle in _COMPARING
        and not (tried.recoveries or tried.aborted_checkpoints or tried.actions)
        and all(map(_only_delays, tried.faults))
    )


def _only_delays(fault: Fault) -> bool:
    return isinstance(fault, _TIMING)


def _shown(records: Counter[object]) -> str:
    """The smallest by their text, so that it does not depend on the order in which they came."""
    shown = sorted(map(repr, records))
    if not shown:
        return "nothing else"
    return shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more"
