"""`understudy watermarks`: who holds event time back."""

from __future__ import annotations

import pytest

from .conftest import Running, Shell


@pytest.mark.every_run
def test_watermarks_says_who_holds_event_time_back(shared: Shell, running: Running) -> None:
    running.until(
        lambda client: [each.event_time for each in client.details(running.job_id).tasks][1:], "two heartbeats"
    )
    done = shared("watermarks", "job", "--operator", "counting")
    assert done.code == 0, done.err
    assert done.out.startswith("event time at 'counting':\n  subtask 0: no watermark yet, for ")
    assert "no assign_timestamps between 'numbers' and 'counting'" in done.out
    assert done.out.endswith("put assign_timestamps between this source and it. Else nothing is wrong.\n")

    of_all = shared("watermarks", "job")
    assert of_all.out.startswith("job 'job' has no event time: no stream in it has assign_timestamps, ")
    assert len(of_all.out.splitlines()) == 1
    of_each_task = shared("watermarks", "job", "--json").json
    assert [each["operator"] for each in of_each_task] == ["numbers", "counted"]
    assert {each["held_by"] for each in of_each_task} == {"no assign_timestamps"}


def test_an_operator_that_is_not_there_is_refused(shared: Shell, running: Running) -> None:
    done = shared("watermarks", running.job_id, "--operator", "windows")
    assert done.code == 1
    assert "no operator 'windows'; it has numbers, counting, counted" in done.err
