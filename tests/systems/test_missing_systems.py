"""A system that is missing skips the tests that need it and says why; in CI it fails them."""

from __future__ import annotations

import pytest

from . import ALL_SYSTEMS, SystemMissing, given


def _start() -> None:
    raise SystemMissing("Nessie", "there is no loch")


def test_what_is_there_is_given() -> None:
    assert given(lambda: 5) == 5


@pytest.mark.parametrize("setting", [None, "", "0"])
def test_without_the_system_a_test_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, setting: str | None
) -> None:
    monkeypatch.delenv(ALL_SYSTEMS, raising=False)
    if setting is not None:
        monkeypatch.setenv(ALL_SYSTEMS, setting)
    with pytest.raises(pytest.skip.Exception, match="Nessie cannot be started: there is no loch"):
        given(_start)


def test_where_all_systems_have_to_be_there_the_skip_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALL_SYSTEMS, "1")
    with pytest.raises(pytest.fail.Exception, match="there is no loch"):
        given(_start)


def test_other_errors_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALL_SYSTEMS, raising=False)
    with pytest.raises(ZeroDivisionError):
        given(lambda: 1 // 0)
