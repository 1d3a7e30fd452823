"""Lazy names are loaded on first use, and meanwhile nobody looks for garbage."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from understudy.runtime.lazy_names import lazy_names

HOME = "import gc\nlooks = gc.isenabled()\n"
BROKEN = "raise RuntimeError('broken')\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    package = tmp_path / "offering_for_test"
    package.mkdir()
    for name, text in {"__init__": "", "home": HOME, "broken": BROKEN}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "offered_for_test", ModuleType("offered_for_test"))
    yield lazy_names("offered_for_test", package.name, {"looks": "home", "lost": "broken"})[0]
    for name in [each for each in sys.modules if each.startswith(package.name)]:
        del sys.modules[name]


@pytest.mark.parametrize("are_on", [True, False])
def test_collections_are_off_while_a_home_is_imported_and_then_as_before(
    load: Callable[[str], Any], are_on: bool
) -> None:
    were_on = gc.isenabled()
    try:
        (gc.enable if are_on else gc.disable)()
        assert load("looks") is False
        assert gc.isenabled() is are_on
        with pytest.raises(RuntimeError, match="broken"):
            load("lost")
        assert gc.isenabled() is are_on
    finally:
        (gc.enable if were_on else gc.disable)()


def test_a_name_that_is_not_offered_is_an_attribute_error(load: Callable[[str], Any]) -> None:
    with pytest.raises(AttributeError, match="module 'offered_for_test' has no attribute 'nosuch'"):
        load("nosuch")
