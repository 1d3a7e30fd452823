"""`python -m benchmarks NAME [--json FILE] [--runs N]`."""

from __future__ import annotations

import click

from .recovery import recovery


@click.group()
def main() -> None:
    """Measure Understudy. Every benchmark checks its answer, and its exit code is 1 when that is wrong."""


main.add_command(recovery)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
