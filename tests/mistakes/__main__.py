"""The mistakes of a first hour, made on purpose: when each is found, and what its author reads.

`python -m tests.mistakes [CLUSTER ...]` prints the table, with checkpoints and without; test_mistakes.py holds it
against what is wanted.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from .clusters import NAMES, cluster_named
from .programs import MISTAKES
from .trying import find, problems


def main(clusters: list[str]) -> int:
    logging.disable(logging.WARNING)  # the table says what the logs would say
    wrong = 0
    for name in clusters or NAMES:
        with cluster_named(name) as cluster:
            for checkpoints in (False, True):
                print(f"\n{name}, {'with' if checkpoints else 'without'} checkpoints")
                for mistake in MISTAKES:
                    with tempfile.TemporaryDirectory() as folder:
                        found = find(mistake, cluster, Path(folder), checkpoints=checkpoints)
                    missing = problems(mistake, found)
                    wrong += bool(missing)
                    print(f"  {mistake.name:30} {found.when:9} {found.seconds:5.1f} s  {found.first_line:.150}")
                    for each in missing:
                        print(f"  {'':30} !! {each}")
    print(f"\n{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
