"""A class of Flink that is imported from here says what is written in its place."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import understudy
from understudy.runtime.api.elsewhere import OF_FLINK


def test_an_import_of_one_says_it() -> None:
    with pytest.raises(
        ImportError, match=r"^understudy has no KeyedProcessFunction: subclass KeyedOperator, with proc"
    ):
        from understudy import KeyedProcessFunction  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match=r"has no ValueStateDescriptor: .* ValueState\(int, default=0\)"):
        import_module("understudy").ValueStateDescriptor  # noqa: B018


def test_any_other_name_is_missing_as_in_any_module() -> None:
    assert not hasattr(understudy, "Nothing")
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'understudy'"):
        from understudy import Nothing  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("name", sorted(OF_FLINK))
def test_what_is_said_is_there_and_the_name_is_not(name: str) -> None:
    assert name not in dir(understudy)
    for named in re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", OF_FLINK[name]):
        assert named in dir(understudy) or named == "SimulatedCluster"
