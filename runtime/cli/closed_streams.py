"""Standard streams that were closed before the command began, as by `>&-`.

Python has None in their place, and the next file or socket would get the number: whoever writes to standard error, as C
code does, would write into it.
"""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Each of them leads nowhere from now on."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the least number that is free, which is this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
