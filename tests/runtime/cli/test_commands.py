"""The names of commands."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu", "words.py:build"], "no such command 'rnu'; did you mean 'understudy run'?"),
        (["words.py:build"], "no such command 'words.py:build'; did you mean 'understudy run words.py:build'?"),
        (["xyzzy"], "no such command 'xyzzy'; there are back-pressure, cancel, "),
    ],
)
def test_a_misspelt_command_gets_the_nearest_one(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert said in result.stderr
