"""What may lie on the disk of a world whose jobs have ended."""

from __future__ import annotations

import pytest

from understudy.runtime.simulation.histories.ending import is_output


@pytest.mark.parametrize("folder", ["collected", "outlets"])
def test_output_stays_and_what_is_begun_there_only_where_a_job_has_not_finished(folder: str) -> None:
    whole, begun = f"/storage/checkpoints/{folder}/job-1/part-0", f"/storage/checkpoints/{folder}/job-1/.part-0"
    assert is_output(whole, all_finished=True)
    assert is_output(whole, all_finished=False)
    assert not is_output(begun, all_finished=True), "who has finished has committed it, or taken it back"
    assert is_output(begun, all_finished=False)


@pytest.mark.parametrize("all_finished", [True, False])
def test_files_of_checkpoints_are_no_output(all_finished: bool) -> None:
    assert not is_output("/storage/checkpoints/job-1/chk-3/_metadata", all_finished=all_finished)
