"""The connectors' package: its names are loaded when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from understudy.runtime import connectors


def test_each_name_is_there_and_no_other_has_a_home() -> None:
    assert all(getattr(connectors, name) is not None for name in connectors.__all__)
    assert sorted(connectors._HOME_OF) == sorted(connectors.__all__) == dir(connectors)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'understudy.runtime.connectors' has no attribute 'FileSnik'"):
        connectors.FileSnik  # noqa: B018


def test_an_error_needs_no_connector() -> None:
    code = (
        "import sys; from understudy.runtime.connectors.errors import MissingExtra; "
        "print([name for name in sys.modules if name.startswith('understudy.runtime.connectors.')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['understudy.runtime.connectors.errors']"


def test_the_command_line_of_a_cluster_loads_no_part_of_a_task() -> None:
    code = (
        "import sys, understudy.runtime.cli.jobs; "
        "print([name for name in sys.modules if name.startswith(('understudy.actors.tasks', "
        "'understudy.actors.operators', 'understudy.runtime.connectors.files'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
