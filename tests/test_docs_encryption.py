"""docs/encryption.md: its commands make a file that encrypts, and its lists are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from understudy.runtime.cli import main
from understudy.state.errors import CorruptState, InvalidEncryptionKeys, WrongEncryptionKey
from understudy.state.keyring import VARIABLE, Keyring

PAGE = (Path(__file__).parent.parent / "docs" / "encryption.md").read_text()


def test_the_commands_make_a_key(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```\n(understudy state .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    file = str(tmp_path / "keys")
    command, export = block.replace("/etc/understudy/keys", file).splitlines()
    result = CliRunner().invoke(main, command.split()[1:])
    assert result.exit_code == 0, result.output
    name, _, value = export.removeprefix("export ").partition("=")
    assert name == VARIABLE
    keys = Keyring.of({name: value})
    assert keys is not None
    assert keys.current in result.output
    assert f"export {VARIABLE}={file}" in result.output
    again = CliRunner().invoke(main, command.split()[1:])
    assert f"stay readable as long as these stand in it: {keys.current}" in again.output


def test_a_file_that_holds_something_else_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("my notes")
    (tmp_path / "notes").chmod(0o600)
    result = CliRunner().invoke(main, ["state", "new-key", str(tmp_path / "notes")])
    assert result.exit_code == 1
    assert "line 1: wanted 32 bytes in base64, found what is no base64" in result.output
    assert (tmp_path / "notes").read_text() == "my notes"


def test_the_errors_are_those_of_the_code() -> None:
    for error in (WrongEncryptionKey, InvalidEncryptionKeys, CorruptState):
        assert f"`{error.__name__}`" in PAGE
