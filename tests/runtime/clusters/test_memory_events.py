"""What is known of processes that the kernel has ended for want of memory, by files as a kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.runtime.clusters.memory_events import MemoryEvents

V2 = "sys/fs/cgroup/app/memory.events"
V2_ROOT = "sys/fs/cgroup/memory.events"
V1 = "sys/fs/cgroup/memory/docker/7f/memory.oom_control"
V1_ROOT = "sys/fs/cgroup/memory/memory.oom_control"
MACHINE = "proc/vmstat"
OF_MACHINE = "oom_kill of this machine (/proc/vmstat)"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("group", "counter", "limit"),
    [
        ("0::/app\n", V2, "sys/fs/cgroup/app/memory.max"),
        ("0::/\n", V2_ROOT, "sys/fs/cgroup/memory.max"),
        ("0::/../../elsewhere\n", V2_ROOT, "sys/fs/cgroup/memory.max"),
        ("4:memory:/docker/7f\n0::/\n", V1, "sys/fs/cgroup/memory/docker/7f/memory.limit_in_bytes"),
        ("4:cpu,memory:/docker/7f\n", V1_ROOT, "sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ],
    ids=["v2", "v2 in a container", "v2 outside of the mount", "v1", "v1 in a container"],
)
def test_the_count_of_the_processes_own_group_decides(tmp_path: Path, group: str, counter: str, limit: str) -> None:
    write(tmp_path, {"proc/self/cgroup": group, MACHINE: "oom_kill 9\n", counter: "oom 4\noom_kill 3\n"})
    write(tmp_path, {limit: f"{512 << 20}\n"})
    events = MemoryEvents(tmp_path, lambda: 0.0)
    assert events.kills() == ""
    write(tmp_path, {MACHINE: "oom_kill 10\n"})
    assert events.kills() == "", "somebody else's"
    write(tmp_path, {counter: "oom 4\noom_kill 4\n"})
    kills = events.kills()
    assert kills is not None
    assert kills.startswith("oom_kill of its container (")
    assert kills.endswith(" went from 3 to 4 in the last 0 s; its limit is 512 MiB")
    assert events.kills() == ""


def test_of_several_that_were_killed_at_once_each_is_explained(tmp_path: Path) -> None:
    """They are asked about one by one; somebody's own kill, later, is none of them."""
    now_s = 0.0
    write(tmp_path, {MACHINE: "oom_kill 0\n"})
    events = MemoryEvents(tmp_path, lambda: now_s)
    write(tmp_path, {MACHINE: "oom_kill 3\n"})
    assert events.kills() == events.kills() == f"{OF_MACHINE} went from 0 to 3 in the last 0 s"
    now_s = 60.0
    assert events.kills() == ""


def test_of_those_that_were_killed_one_after_the_other_none_is_forgotten(tmp_path: Path) -> None:
    """The third was said to be killed by somebody else."""
    write(tmp_path, {MACHINE: "oom_kill 0\n"})
    events = MemoryEvents(tmp_path, lambda: 0.0)
    write(tmp_path, {MACHINE: "oom_kill 2\n"})
    assert events.kills() == f"{OF_MACHINE} went from 0 to 2 in the last 0 s"
    write(tmp_path, {MACHINE: "oom_kill 3\n"})
    assert events.kills() == events.kills() == f"{OF_MACHINE} went from 0 to 3 in the last 0 s"
    assert events.kills() == ""


@pytest.mark.parametrize(("passed_s", "span"), [(70.0, "70 s"), (600.0, "10 min"), (10_800.0, "3 h")])
def test_how_long_ago_the_count_may_have_changed_is_said(passed_s: float, span: str, tmp_path: Path) -> None:
    """A kill hours ago, of whichever process, was said to be the cause of today's."""
    now_s = 0.0
    write(tmp_path, {MACHINE: "oom_kill 0\n"})
    events = MemoryEvents(tmp_path, lambda: now_s)
    write(tmp_path, {MACHINE: "oom_kill 1\n"})
    now_s = passed_s
    assert events.kills() == f"{OF_MACHINE} went from 0 to 1 in the last {span}"


@pytest.mark.parametrize("limit", ["max", str((1 << 63) - 4096)])
def test_where_there_is_no_limit_none_is_named(tmp_path: Path, limit: str) -> None:
    write(tmp_path, {"proc/self/cgroup": "0::/app\n", V2: "oom_kill 0\n", "sys/fs/cgroup/app/memory.max": limit})
    events = MemoryEvents(tmp_path, lambda: 0.0)
    write(tmp_path, {V2: "oom_kill 1\n"})
    assert str(events.kills()).endswith("went from 0 to 1 in the last 0 s")


def test_without_a_group_the_machine_counts(tmp_path: Path) -> None:
    write(tmp_path, {MACHINE: "pgfault 7\noom_kill 0\n"})
    events = MemoryEvents(tmp_path, lambda: 0.0)
    write(tmp_path, {MACHINE: "pgfault 8\noom_kill 2\n"})
    assert events.kills() == f"{OF_MACHINE} went from 0 to 2 in the last 0 s"


def test_where_the_system_does_not_count_nothing_is_known(tmp_path: Path) -> None:
    assert MemoryEvents(tmp_path).kills() is None
