"""What docs/cli.md shows is run as it stands; and what it says of commands and their options is so."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from understudy.runtime.cli import main

from .conftest import WAIT_S, Shell

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "cli.md").read_text()
README = (ROOT / "README.md").read_text()


def test_the_life_of_a_job_runs_as_it_is_shown(shell: Shell) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.partition("## A job's life\n")[2], re.DOTALL)
    commands = f'set -e\nunderstudy() {{ {sys.executable} -m understudy "$@"; }}\n{script}\nwait $! || true\n'
    script_run = subprocess.Popen(
        ["bash", "-c", commands],
        cwd=shell.folder,
        env=shell.env | {"EXAMPLES": str(ROOT / "examples")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    shell.started.append(script_run)
    told, _ = script_run.communicate(timeout=WAIT_S)
    assert script_run.returncode == 0, told
    first, second = (counts(shell.folder / name) for name in ("first.txt", "second.txt"))
    assert first
    assert second
    for word, numbers in first.items():
        assert numbers == list(range(1, len(numbers) + 1))
        assert min(second[word]) == len(numbers) + 1, "the second run goes on where the first one stopped"
    shell.eventually_nothing_is_left()


def counts(path: Path) -> dict[str, list[int]]:
    """How the count of each word went on."""
    found: dict[str, list[int]] = {}
    for word, number in re.findall(r"\('(\w+)', (\d+)\)", path.read_text()):
        found.setdefault(word, []).append(int(number))
    return found


@pytest.mark.parametrize("verb", ["run", "info", "list", "savepoint", "stop", "cancel", "checkpoints", "watermarks"])
def test_every_option_that_is_shown_is_one(verb: str) -> None:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    known = {name for parameter in command.params for name in parameter.opts}
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{verb} ") and "--dispose" not in line)
    shown = set(re.findall(r"(?<!-)--[a-z][a-z-]+", row.split("|")[1]))
    assert shown <= known


SHOWN = r"understudy ((?:run|info|list|savepoint|stop|cancel|checkpoints)\b.*?)(?= *(?:[)`#|&>]|2>|$))"


@pytest.mark.parametrize("line", [line for page in (README, PAGE) for line in re.findall(SHOWN, page, re.MULTILINE)])
def test_every_command_line_that_is_shown_is_understood(line: str) -> None:
    verb, *arguments = line.split()
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    if arguments:
        command.make_context(verb, arguments)


def test_every_command_takes_json_if_it_prints_anything() -> None:
    for verb in ("run", "info", "list", "savepoint", "stop", "cancel", "checkpoints", "watermarks"):
        command = main.get_command(click.Context(main), verb)
        assert command is not None
        assert any("--json" in parameter.opts for parameter in command.params), verb


PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "connectors").glob("*.md")),
]
PLACEHOLDER = re.compile(r"[][{}…<]|\.\.\.|\b[A-Z]{3,}\b")
LINE = re.compile(r"(?<!from )(?<![\w./:=\"'-])understudy ([a-z][a-z-]*\b(?:(?! 2>)[^`\n#|&>)])*)")


def _named(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command, and what follows it."""
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            pytest.fail(f"there is no command {' '.join(words)}")
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_of_any_page_is_one_that_is_understood(page: Path) -> None:
    text = page.read_text()
    in_code = re.findall(r"```(?:sh|bash|console)\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    for line in (found for block in in_code for each in block for found in LINE.findall(each)):
        command, words = _named(shlex.split(line))
        options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        given = [word.partition("=")[0] for word in " ".join(words).partition(" -- ")[0].split()]
        assert {word for word in given if re.match(r"--[a-z]", word)} <= options, line
        if words and not isinstance(command, click.Group) and not PLACEHOLDER.search(line):
            command.make_context(line, words)
