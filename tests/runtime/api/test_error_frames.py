"""The traceback of a refusal ends where the user's program does: frames of the library say nothing of what to mend."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from understudy import DuplicateName, LocalCluster, NoSink, StandaloneCluster, StreamEnvironment
from understudy.messages.known_names import known_arguments
from understudy.testing import SimulatedCluster


def frames_of(error: BaseException) -> list[str]:
    """The functions of its traceback."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def without_sink(cluster: Any) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).map(str)
    cluster.submit(env)


def of_a_lock(cluster: Any) -> None:
    env, lock = StreamEnvironment(), threading.Lock()
    env.from_collection([1]).map(lambda number: (number, lock)).collect(name="out")
    cluster.submit(env)


def too_parallel(cluster: Any) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).map(str, parallelism=9).collect(name="out")
    cluster.submit(env)


def with_a_wrong_argument(cluster: Any) -> None:
    cluster.submit(StreamEnvironment(), from_savepoint="x", resumed="latest")


def of_a_savepoint_that_is_not_there(cluster: Any) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    cluster.submit(env, from_savepoint="/no/such/savepoint")


def with_a_wrong_setting(_: Any) -> None:
    LocalCluster(heartbeat_timeout=5)  # type: ignore[call-arg]


def with_a_setting_too_small(_: Any) -> None:
    LocalCluster(task_managers=0)


def of_debugging_with_a_setting_too_small(_: Any) -> None:
    LocalCluster(task_managers=0, debug=True)


def of_debugging_with_a_wrong_setting(_: Any) -> None:
    LocalCluster(heartbeat_timeout=5, debug=True)  # type: ignore[call-arg]


def with_a_setting_given_twice(_: Any) -> None:
    LocalCluster(2, task_managers=3)


def with_a_wrong_setting_of_the_simulator(_: Any) -> None:
    SimulatedCluster(1, sead=7)


def of_hosts_without_a_settings_file(_: Any) -> None:
    StandaloneCluster("no/such/file.yaml")


def with_a_name_twice(_: Any) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).uid("a").map(str).uid("a")


@pytest.mark.parametrize(
    "mistake",
    [
        without_sink,
        of_a_lock,
        too_parallel,
        with_a_wrong_argument,
        of_a_savepoint_that_is_not_there,
        with_a_wrong_setting,
        with_a_setting_too_small,
        of_debugging_with_a_setting_too_small,
        of_debugging_with_a_wrong_setting,
        with_a_setting_given_twice,
        with_a_wrong_setting_of_the_simulator,
        of_hosts_without_a_settings_file,
        with_a_name_twice,
    ],
)
def test_the_users_line_is_the_last_one(mistake: Callable[[Any], None]) -> None:
    with SimulatedCluster(1) as cluster, pytest.raises(Exception, match=r"\w") as raised:
        mistake(cluster)
    assert frames_of(raised.value)[1:] == [mistake.__name__]


def test_a_refusal_inside_code_of_the_user_that_was_called_keeps_all_frames() -> None:
    """The mistake may be there, or in who has called it."""

    @known_arguments()
    def called() -> None:
        with_a_name_twice(None)

    with pytest.raises(DuplicateName) as raised:
        called()
    assert frames_of(raised.value)[1:] == ["checked", "called", "with_a_name_twice"]


def test_what_is_no_refusal_keeps_its_frames() -> None:
    """As a mistake of the library itself, which whoever mends it wants to see."""

    @known_arguments()
    def wrong() -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError) as raised:
        wrong()
    assert frames_of(raised.value)[1:] == ["checked", "wrong"]


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
def test_the_cause_of_a_refusal_is_kept() -> None:
    env = StreamEnvironment(checkpoint_interval_ms=100, checkpoint_dir=__file__)
    env.from_collection([1]).collect(name="out")
    with LocalCluster() as cluster, pytest.raises(Exception, match="checkpoint") as raised:
        cluster.submit(env)
    assert len(frames_of(raised.value)) == 1
    assert isinstance(raised.value.__cause__ or raised.value.__context__, OSError)


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
def test_an_async_twin_shows_no_frames_of_its_thread() -> None:
    async def submit() -> None:
        async with LocalCluster() as cluster:
            await cluster.submit_async(StreamEnvironment())

    with pytest.raises(NoSink) as raised:
        asyncio.run(submit())
    assert frames_of(raised.value)[-1] == "submit"
