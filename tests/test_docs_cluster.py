"""docs/cluster.md is true: its set-up runs as it stands, and what it names is there; its program: test_standing.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.free_port import free_port
from understudy.runtime.cli import main
from understudy.runtime.hosts.settings import SETTINGS
from understudy.runtime.hosts.settings_sources import load_settings

from .prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "cluster.md").read_text()
(SETUP,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(REFUSAL,) = re.findall(r"```\n(understudy\.yaml.*?)\n```", PAGE)


@pytest.mark.processes
def test_the_set_up_runs_as_it_stands(tmp_path: Path) -> None:
    """On another port, which the environment names."""
    (tmp_path / "tmp").mkdir()
    port = free_port()
    assert len(SETUP.strip().splitlines()) == 12, "ten lines, and two of the file's quotation"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("UNDERSTUDY_")}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp"), "UNDERSTUDY_JOBMANAGER_PORT": str(port)}
    done = subprocess.run(
        ["bash", "-c", f'set -e\nunderstudy() {{ {sys.executable} -m understudy "$@"; }}\n{SETUP}'],
        cwd=tmp_path,
        env=environment | {"EXAMPLES": str(ROOT / "examples")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout.count(" leads "), done.stdout.count(" alive ")) == (1, 2), done.stdout
    assert re.search(r"\nmade the key file .*/key\n", f"\n{done.stderr}")
    assert len(re.findall(r": stopped (?:jobmanager|taskmanager-\d) ", done.stderr)) == 2, done.stderr
    assert list((tmp_path / ".understudy" / "run").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_mistake_is_answered_as_shown(tmp_path: Path) -> None:
    (tmp_path / "understudy.yaml").write_text("\n\njobmanager.prot: 1\n")
    with pytest.raises(ValueError, match=re.escape(REFUSAL)):
        load_settings(tmp_path / "understudy.yaml", environment={})


@pytest.mark.parametrize("key", sorted(set(re.findall(r"`((?:[a-z]+\.)+(?!log|out|yaml)[a-z-]+)[`:]", PAGE))))
def test_each_setting_that_is_named_is_one(key: str) -> None:
    assert key in SETTINGS


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`understudy ([^`]*)`", PAGE))))
def test_each_command_that_is_named_is_one(named: str) -> None:
    command: click.Command = main
    words = named.split()
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, named
        command = found
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options
