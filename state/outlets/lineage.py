"""OutletLineage: which attempts have made an outlet what it is, and whether a cursor is a place in it.

Positions count records. Each attempt that writes begins a *branch* where the checkpoint ends that it was restored from;
the branches before it end there. So the lineage is a chain of branches, and says which attempt's records are the
outlet's at each position:

    branches   a: 0     b: 40        c: 90            position 60 belongs to b: its record was committed by b
    positions  0 ------ 40 --------- 90 ----- end

A job that is restored from the newest checkpoint goes on where readers are. One that goes back further, or is started
from an older savepoint, leaves what was committed after it: a cursor of a branch there, or behind a branch's end, leads
to records that are not the outlet's any more. It is refused, with the last position that both have in common.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ...messages import OutletBranch

OUTLET_STATE = "outlet"
"""The name of the state by which an operator is known to write an outlet."""

CURSOR = re.compile(
    r"(?P<text>(?P<outlet>.+)@(?P<position>[0-9]{16})\.(?P<since>[0-9]+)\.(?P<job>[0-9a-f]+)\.(?P<number>[0-9]+)"
    r"\.(?P<attempt>[0-9a-f]+))\.(?P<checksum>[0-9a-f]{8})"
)
"""Text that sorts by position. The CRC-32 of what is before it ends it, so that half a cursor is none."""


class CursorRefused(Exception):
    """Base of what is wrong with a cursor."""


class NoCursorOfThis(CursorRefused):
    """The text is no cursor, or that of another outlet."""


class CursorForked(CursorRefused):
    """It leads to records that are not the outlet's any more. `common`: the last position before them that is."""

    def __init__(self, common: int) -> None:
        super().__init__(common)
        self.common = common


@dataclass(frozen=True, slots=True)
class OutletLineage:
    """`outlet`: the name in cursors. `branches`: the oldest first, and at least one."""

    outlet: str
    branches: tuple[OutletBranch, ...]

    def continued(self, job: str, attempt_number: int, attempt: str, end: int) -> OutletLineage:
        """With a branch of this attempt from `end` on; branches without a record are left out."""
        kept = [branch for branch in self.branches if branch.first < end]
        return OutletLineage(self.outlet, (*kept, OutletBranch(job, attempt_number, attempt, end)))

    def owns(self, branch: OutletBranch, first: int) -> bool:
        """Whether records of this branch that begin at `first` are the outlet's."""
        ends = [*(each.first for each in self.branches[1:]), None]
        for each, stop in zip(self.branches, ends, strict=True):
            if _same(each, branch):
                return each.first <= first and (stop is None or first < stop)
        return False

    def cursor(self, position: int) -> str:
        """The text for this position, which must be one of the outlet's."""
        branch = self._before(position)
        place = f"{position:016d}.{branch.first}.{branch.job}.{branch.attempt_number}.{branch.attempt}"
        text = f"{quote(self.outlet, safe='', errors='surrogatepass')}@{place}"
        return f"{text}.{_checksum(text)}"

    def locate(self, cursor: str, end: int) -> int:
        """The position of a cursor in this outlet, which ends at `end` now. Raises NoCursorOfThis, CursorForked."""
        found = CURSOR.fullmatch(cursor)
        if found is None:
            raise NoCursorOfThis("this is no cursor of an outlet")
        if _checksum(found["text"]) != found["checksum"]:
            raise NoCursorOfThis("this is no cursor of an outlet as it was given: its checksum is wrong")
        if found["outlet"] != quote(self.outlet, safe="", errors="surrogatepass"):
            raise NoCursorOfThis(f"this is a cursor of outlet {found['outlet']!r}")
        position = int(found["position"])
        branch = OutletBranch(found["job"], int(found["number"]), found["attempt"], int(found["since"]))
        if position == 0:
            return 0
        common = self._common_with(branch, end)
        if position > common:
            raise CursorForked(common)
        return position

    def _before(self, position: int) -> OutletBranch:
        """The branch whose record is the last one before this position."""
        before = [branch for branch in self.branches if branch.first < position]
        return before[-1] if before else self.branches[0]

    def _common_with(self, branch: OutletBranch, end: int) -> int:
        """Up to which position the outlet is what it was when this branch wrote."""
        ends = [*(each.first for each in self.branches[1:]), end]
        for each, stop in zip(self.branches, ends, strict=True):
            if _same(each, branch):
                return stop
        of_job = [index for index, each in enumerate(self.branches) if each.job == branch.job]
        if not of_job:
            return 0
        newer = [index for index in of_job if self.branches[index].attempt_number > branch.attempt_number]
        left_at = newer[0] if newer else of_job[-1] + 1
        return min(branch.first, self.branches[left_at].first if left_at < len(self.branches) else end)


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _same(one: OutletBranch, other: OutletBranch) -> bool:
    return (one.job, one.attempt_number, one.attempt) == (other.job, other.attempt_number, other.attempt)


def contiguous(firsts_and_ends: Sequence[tuple[int, int]], end: int) -> int:
    """Of pieces in order: how many at the head are cut off from `end` by a gap."""
    at = end
    for index in range(len(firsts_and_ends) - 1, -1, -1):
        first, last = firsts_and_ends[index]
        if last != at:
            return index + 1
        at = first
    return 0
