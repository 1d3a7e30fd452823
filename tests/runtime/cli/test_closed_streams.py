"""A command whose standard streams are closed, as `>&-` or a careless service manager does it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_LOOK = (
    "import socket, sys; from understudy.runtime.cli import main; main(['--version'], standalone_mode=False); "
    "made = socket.socket(); print('x'); print('y', file=sys.stderr); sys.stdout.isatty(); sys.stdin.read(); "
    "sys.exit(40 + (made.fileno() > 2))"
)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_what_would_go_to_a_closed_stream_goes_nowhere_and_to_no_socket_that_takes_its_number(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, _LOOK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 41, done.stderr


def test_a_note_that_nobody_reads_any_more_is_no_failure() -> None:
    """A daemon whose output went to `head` ends by SIGTERM with exit code 0, as any other does."""
    look = "from understudy.runtime.cli.output import note; note('a'); sys = __import__('sys'); sys.exit(41)"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", look], stderr=writer, check=False)
    finally:
        os.close(writer)
    assert done.returncode == 41
