"""deploy/ is true: the commands of units and containers are commands of ours, with options that there are; their
settings are settings; and what the image copies is there, and enough to build the wheel.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from understudy.runtime.cli import main
from understudy.runtime.hosts.settings import SETTINGS, HostSettings
from understudy.runtime.hosts.settings_sources import load_settings

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
DOCKERFILE = (DEPLOY / "container" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
VARIABLES = {each.variable: each for each in SETTINGS.values()}


def parse(arguments: list[str]) -> dict[str, Any]:
    """As the command line reads them, without doing it; raises click's UsageError."""
    context = click.Context(main)
    command: click.Command = main
    while isinstance(command, click.Group):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command, context = found, click.Context(found, info_name=name)
    return command.make_context(command.name, arguments).params


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read_string(path.read_text())
    return parser


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_units_run_commands_of_ours(path: Path) -> None:
    program, *arguments = shlex.split(unit(path)["Service"]["ExecStart"])
    assert program == "/opt/understudy/bin/understudy"
    assert arguments[0] == re.findall("jobmanager|taskmanager", path.name)[0]
    assert parse(arguments)["config_file"] == "/etc/understudy/understudy.yaml"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_units_give_the_processes_their_folders_and_time_to_end(path: Path) -> None:
    service = unit(path)["Service"]
    settings = load_settings(DEPLOY / "understudy.yaml", environment={}).settings
    assert settings.run_dir == f"/run/{service['RuntimeDirectory']}"
    assert settings.log_dir == f"/var/log/{service['LogsDirectory']}"
    assert service["KillMode"] == "mixed", "a signal to each child would end tasks before their TaskManager can say so"
    assert service["User"] != "root"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_units(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name.replace("@", "@1")
    copy.write_text(path.read_text().replace("/opt/understudy/bin/understudy", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if str(copy) in line]


def test_the_example_settings_are_settings() -> None:
    loaded = load_settings(DEPLOY / "understudy.yaml", environment={})
    assert loaded.settings.workers == ("node-1.example.net", "node-2.example.net")
    shown = {key for key, found in loaded.found.items() if found.origin != "default"}
    assert {"jobmanager.host", "storage.dir", "security.key-file"} <= shown


def instructions(name: str) -> list[str]:
    """The arguments of all instructions of this kind."""
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.partition(" ")[2] for line in joined.splitlines() if line.startswith(f"{name} ")]


def test_the_image_runs_a_command_of_ours_with_settings_that_there_are() -> None:
    (entrypoint,), (command,) = instructions("ENTRYPOINT"), instructions("CMD")
    assert json.loads(entrypoint) == ["understudy"]
    parse(json.loads(command))
    (environment,) = instructions("ENV")
    variables = dict(pair.split("=") for pair in environment.split())
    assert set(variables) <= set(VARIABLES)
    assert instructions("EXPOSE") == [str(HostSettings().jobmanager_port)]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]


def copied() -> list[str]:
    return [name for each in instructions("COPY") if "--from" not in each for name in each.split()[:-1]]


def test_what_the_image_copies_is_there_and_is_all_that_is_installed() -> None:
    assert all((ROOT / name).exists() for name in copied())
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    folders = {line.partition("=")[2].strip() for line in config["options"]["package_dir"].split("\n") if line}
    assert {folder.partition("/")[0] for folder in folders} <= set(copied())


@pytest.mark.slow
def test_the_wheel_can_be_built_from_what_the_image_copies(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)], cwd=source, check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True)
    environment = os.environ | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "config", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout)) == set(SETTINGS)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_the_composed_services_run_commands_of_ours_with_settings_that_there_are(name: str) -> None:
    service = COMPOSE["services"][name]
    parse(service["command"])
    for variable, value in service["environment"].items():
        VARIABLES[variable].kind.parse(str(value))
    for needed in service.get("depends_on", {}):
        assert needed in COMPOSE["services"]


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse(["taskmanager", "--slots", "2"])
