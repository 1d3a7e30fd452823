"""What was committed is still there when the power fails, in folders that an earlier attempt had made, too."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from understudy.runtime.connectors.files.output_directory import OutputDirectory
from understudy.runtime.simulation.world.disk import DiskOperation, SimulatedDisk
from understudy.runtime.simulation.world.file_system import using

SYNCS_BEFORE_THE_FAILURE = range(5)


class FailingSync:
    """The sync of a folder fails, after so many that did not."""

    def __init__(self, spared: int) -> None:
        self.spared = spared

    def before(self, operation: DiskOperation) -> None:
        if operation.kind == "sync_directory":
            self.spared -= 1
            if self.spared == -1:
                raise OSError(5, "the simulated disk failed")


@pytest.fixture(params=SYNCS_BEFORE_THE_FAILURE)
def disk(request: pytest.FixtureRequest) -> Iterator[SimulatedDisk]:
    with using(SimulatedDisk(hooks=FailingSync(request.param))) as found:
        yield found


@pytest.mark.parametrize("seed", range(5))
def test_the_folders_that_a_failed_attempt_has_made_last_for_the_next_one(disk: SimulatedDisk, seed: int) -> None:
    """A simulated history lost its output so: the folder was there, and nobody had synced the one it lies in."""
    published = False
    while not published:
        directory = OutputDirectory("sim://jobs/collected/job-1/out", ".hidden")
        try:
            directory.seal(directory.create("file"), "file")
            directory.publish("file", "part-0")
        except OSError:
            continue
        published = True
    disk.crash(Random(seed))
    assert directory.committed("part") == ["part-0"]
