"""python -m tests.conformance FILE...: plays vector files on our own classes.

Prints a line for each scenario that differs, then what was skipped and why, then `N passed, N failed`. Exits with 0
when all passed, 1 when any failed, 2 when a file is no vector file.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from .runner import NotAVectorFile, Tally, run


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m tests.conformance FILE...", file=sys.stderr)
        return 2
    tally, status = Tally(), 0
    for argument in arguments:
        try:
            run(Path(argument), tally, sys.stdout)
        except NotAVectorFile as error:
            print(f"error: {error}", file=sys.stderr)
            status = 2
    for reason, count in tally.skipped.items():
        print(f"skipped {count}: {reason}")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return status or int(tally.failed > 0)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # scenarios make our classes fail, and they log that
    sys.exit(main(sys.argv[1:]))
