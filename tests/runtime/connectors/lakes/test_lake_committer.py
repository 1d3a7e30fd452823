"""LakeCommitter: a commit that others are always ahead of has not happened."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.operators.marker import Marker
from understudy.runtime.connectors.lakes.lake_sink import COMMIT_ROUNDS, LakeCommitter


class Outrun(Exception):
    """Somebody else has committed."""


class OutrunCommitter(LakeCommitter):
    rounds = 0

    def last_marker(self, writer: str) -> int | None:
        return None

    def missing(self, committables: list[Any]) -> list[str]:
        return []

    def conflict(self) -> type[Exception]:
        return Outrun

    def commit_once(self, committables: list[Any], marker: Marker) -> None:
        self.rounds += 1
        raise Outrun


def test_a_commit_that_others_are_always_ahead_of_fails() -> None:
    committer = OutrunCommitter("table", None)
    committer.open()
    with pytest.raises(Outrun):
        committer.commit(["a file"], Marker(writer="writer", sequence=1, after=0, sink="sink"))
    assert committer.rounds == COMMIT_ROUNDS
    committer.close()
