"""The peers: what each needs installed, which workloads it runs, how it is set up, and how many rows it is given.

A peer that is slow gets fewer rows, so that a comparison ends within the hour; its rate is what is compared, and its
rows stand in the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from .contest import Side
from .data import Dataset, dataset
from .venvs import Environment, python_of

DUCKDB = Environment("duckdb", ("duckdb", "pyarrow", "numpy"))
POLARS = Environment("polars", ("polars", "numpy", "pyarrow"))


@dataclass(frozen=True)
class Peer:
    """`chosen_by`: the word in --peers. `most_rows`: per workload; no limit where it is not named."""

    name: str
    chosen_by: str
    module: str
    environment: Environment
    workloads: tuple[str, ...]
    setting: str
    clusters: tuple[str, ...] = ("local",)
    most_rows: dict[str, int] = field(default_factory=dict, hash=False)
    options: dict[str, object] = field(default_factory=dict, hash=False)


KEYED, STATEFUL = "keyed-aggregate", "stateful-function"

PEERS = (
    Peer("duckdb", "duckdb", "duckdb", DUCKDB, (KEYED,), "one query, 2 threads, no fault tolerance"),
    Peer("polars", "polars", "polars", POLARS, (KEYED,), "one query, 2 threads, no fault tolerance"),
)


def choose(names: str, workload: str, cluster: str) -> list[Peer]:
    """The peers of a comma-separated list that run this workload. Raises BadParameter for an unknown word."""
    words = [word for word in names.replace(" ", "").split(",") if word]
    known = {peer.chosen_by for peer in PEERS}
    for word in words:
        if word not in known:
            raise click.BadParameter(f"wanted some of {','.join(sorted(known))}, found {word!r}", param_hint="--peers")
    return [
        peer
        for word in words
        for peer in PEERS
        if peer.chosen_by == word and workload in peer.workloads and cluster in peer.clusters
    ]


def peer_sides(peers: Sequence[Peer], data: Dataset, cache: Path, keys: int, workload: str) -> list[Side]:
    """Install what is missing, make the data of those that get fewer rows, and say how to run each."""
    sides = []
    for peer in peers:
        python = python_of(peer.environment, cache)
        rows = min(data.rows, peer.most_rows.get(workload, data.rows))
        sides.append(
            Side(
                peer.name,
                [str(python), "-P", "-m", f"benchmarks.peers.{peer.module}"],
                data if rows == data.rows else dataset(cache, rows, keys),
                {**peer.options, "cache": str(cache)},
                setting=peer.setting,
            )
        )
    return sides
