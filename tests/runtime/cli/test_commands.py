"""The names of commands, and what each of them loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main

pytestmark = pytest.mark.every_run


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


def test_every_command_is_listed_on_a_line_of_its_own() -> None:
    told = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout.split("Programs:")[1]
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ")]
    assert sorted(listed) == main.list_commands(click.Context(main))
    for name in listed:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.name == name


LOADED = """
import sys
from understudy.runtime.cli import main
for words in {words}:
    main(words, standalone_mode=False)
print(*(each for each in sys.modules if each.startswith({start!r})), file=sys.stderr)
"""


def loaded_by(commands: list[list[str]], start: str, home: Path) -> set[str]:
    """The modules whose names start like that, after these commands in a process of their own."""
    code = LOADED.format(words=commands, start=start)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=home)
    return set(done.stderr.split())


def test_to_list_the_commands_loads_none_of_them(tmp_path: Path) -> None:
    loaded = loaded_by([["--help"]], "understudy.runtime.cli.", tmp_path)
    assert loaded == {"understudy.runtime.cli.closed_streams", "understudy.runtime.cli.groups"}


def test_a_command_that_only_asks_loads_nothing_of_what_a_job_is_made_of(tmp_path: Path) -> None:
    """Most of a second, each time."""
    asking = [["config"], *([name, "--help"] for name in ("list", "logs", "savepoint", "cluster", "jobmanager"))]
    loaded = loaded_by(asking, "understudy.", tmp_path)
    assert "understudy.runtime.hosts.hosts_client" in loaded
    assert (
        loaded
        & {
            "understudy.actors.job_manager.job_manager",
            "understudy.actors.operators.operator",
            "understudy.actors.tasks.task",
            "understudy.runtime.api.environment",
            "understudy.runtime.api.translation",
            "understudy.runtime.clusters.cluster",
            "understudy.runtime.hosts.standalone_cluster",
            "understudy.state.columnar.columnar_backend",
        }
        == set()
    )
