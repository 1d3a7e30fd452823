"""Settings of a cluster that there are not."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import pytest

from understudy import InvalidSetting, LocalCluster, RemoteCluster, StandaloneCluster
from understudy.runtime.clusters.cluster_settings import ClusterOptions, ClusterSettings


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("slots", "; did you mean 'slots_per_task_manager'? There are task_managers, "),
        ("port", ": write web_port=8081 for the page"),
        ("heartbeat_timeout", "; did you mean 'heartbeat_timeout_ms'? There are "),
        ("zoo", ". There are task_managers, "),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_a_wrong_name_is_answered_with_the_right_ones(wrong: str, hint: str, debug: bool) -> None:
    with pytest.raises(TypeError) as raised:
        LocalCluster(2, debug=debug, **{wrong: 4})
    assert str(raised.value).startswith(f"LocalCluster has no argument {wrong!r}{hint}")


def test_a_right_one_is_taken() -> None:
    assert LocalCluster(2, 4, web_port=0).settings == ClusterSettings(2, 4, web_port=0)


@pytest.mark.parametrize(("cluster", "first"), [(StandaloneCluster, "settings"), (RemoteCluster, "address")])
def test_so_it_is_of_clusters_elsewhere(cluster: type, first: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^{cluster.__name__} has no argument 'zoo'\. There are {first}, .*timeout_ms"
    ):
        cluster("localhost:1", zoo=4)


def test_one_that_is_given_twice_is_named() -> None:
    told = "LocalCluster: task_managers is given twice, 2 by its place and task_managers=3: leave one of them out"
    for debug in (False, True):
        with pytest.raises(TypeError) as raised:
            LocalCluster(2, task_managers=3, debug=debug)  # type: ignore[misc]
        assert str(raised.value) == told


class OfTwo(LocalCluster):
    def __init__(self, **settings: Any) -> None:
        super().__init__(2, **settings)


class OfTwoInOneProcess(OfTwo):
    def __init__(self) -> None:
        super().__init__(debug=True)


@pytest.mark.parametrize("make", [lambda: OfTwo(debug=True), OfTwoInOneProcess])
def test_a_class_of_the_users_is_not_replaced_for_debugging(make: Callable[[], LocalCluster]) -> None:
    with pytest.raises(
        InvalidSetting, match=r"debug: .* of another class than OfTwo.*: write LocalCluster\(\.\.\., deb"
    ):
        make()


def test_type_checkers_know_each_setting():
    said = typing.get_type_hints(ClusterOptions)
    meant = typing.get_type_hints(ClusterSettings)
    assert said == {name: meant[name] for name in list(meant)[2:]}
