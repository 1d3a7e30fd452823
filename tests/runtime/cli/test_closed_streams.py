"""A command whose standard streams are closed, as `>&-` or a careless service manager does it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOOK = (
    "import understudy.runtime.cli, os, socket, sys; "
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
