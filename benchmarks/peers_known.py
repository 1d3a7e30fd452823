"""The peers: what each needs installed, which workloads it runs, how it is set up, and how many rows it is given.

A peer that is slow gets fewer rows, so that a comparison ends within the hour; its rate is what is compared, and its
rows stand in the report.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from .contest import Side
from .data import Dataset, dataset, raw_pairs, whole_halves
from .timed_data import TIMERS, packed_pairs, timed_dataset
from .venvs import Environment, python_of

DUCKDB = Environment("duckdb", ("duckdb", "pyarrow", "numpy"))
SPARK = Environment(
    "spark",
    (
        "pyspark>=4.1,<5",
        "pandas<3",
        "pyarrow",
        "numpy",
        "grpcio",
        "grpcio-status",
        "protobuf",
        "googleapis-common-protos",
        "zstandard",
    ),
)
BYTEWAX = Environment("bytewax", ("bytewax", "pyarrow", "numpy"))
FLINK_VERSION = "2.3.0"
FLINK = Environment(
    "flink",
    (f"apache-flink=={FLINK_VERSION}",),
    (  # its Parquet format, and what that does not bring along
        f"org.apache.flink:flink-sql-parquet:{FLINK_VERSION}",
        "org.apache.hadoop:hadoop-client-api:3.4.2",
        "org.apache.hadoop:hadoop-client-runtime:3.4.2",
    ),
)
POLARS = Environment("polars", ("polars", "numpy", "pyarrow"))
PATHWAY = Environment("pathway", ("pathway", "numpy", "pyarrow"))


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
    reads: str = "files"
    """Of INPUTS."""
    needs: str = ""
    """Python that fails where the peer's version lacks what the workload is about."""


KEYED, STATEFUL, WINDOWS, ASYNC = "keyed-aggregate", "stateful-function", "windows", "async"

WARM_UP_ROWS = 200_000

INPUTS = {"files": "parquet", "halves": "noted-parquet", "pairs": "pairs"}
"""What a peer reads, with the name of the format among Flink's: the Parquet files as they are; one of them per half of
the keys, where files are read in no order; or raw pairs.
"""

CHECKPOINTED = "exactly once, checkpoint every 1 s"
BYTEWAX_SETTING = "2 processes, recovery on, an epoch a second"


def _flinks(module: str, workloads: tuple[str, ...], what: str) -> list[Peer]:
    """Flink's Java engine twice: reading Parquet as we do, and reading what costs it least."""
    setting = f"Java: {what}; parallelism 2 in one process, {CHECKPOINTED}"
    return [
        Peer("flink", "flink", module, FLINK, workloads, f"{setting}; Parquet", reads="halves"),
        Peer("flink-pairs", "flink-pairs", module, FLINK, workloads, f"{setting}; raw pairs", reads="pairs"),
    ]


PEERS = (
    Peer("duckdb", "duckdb", "duckdb", DUCKDB, (KEYED,), "one query, 2 threads, no fault tolerance"),
    Peer("polars", "polars", "polars", POLARS, (KEYED,), "one query, 2 threads, no fault tolerance"),
    Peer(
        "spark",
        "spark",
        "spark",
        SPARK,
        (KEYED, STATEFUL),
        "Structured Streaming, local[2], micro-batches of about 1 s, each a checkpoint",
        clusters=("local", "spark"),
        most_rows={STATEFUL: 200_000},
        options={"files_per_trigger": 6},
    ),
    Peer(
        "bytewax",
        "bytewax",
        "bytewax",
        BYTEWAX,
        (KEYED, STATEFUL),
        f"{BYTEWAX_SETTING}; stateful_map: a call per record",
        most_rows={STATEFUL: 1_000_000},
        options={"call": "record"},
    ),
    Peer(
        "bytewax-batch",
        "bytewax",
        "bytewax",
        BYTEWAX,
        (STATEFUL,),
        f"{BYTEWAX_SETTING}; stateful_batch: a call with a key's records of a batch",
        most_rows={STATEFUL: 1_000_000},
        options={"call": "batch"},
    ),
    Peer(
        "pyflink",
        "pyflink",
        "pyflink",
        FLINK,
        (STATEFUL,),
        f"DataStream, process mode, parallelism 2, {CHECKPOINTED}",
        most_rows={STATEFUL: 200_000},
        options={"mode": "process"},
        reads="pairs",
    ),
    Peer(
        "pyflink-thread",
        "pyflink",
        "pyflink",
        FLINK,
        (STATEFUL,),
        f"DataStream, thread mode, parallelism 2, {CHECKPOINTED}",
        most_rows={STATEFUL: 200_000},
        options={"mode": "thread"},
        reads="pairs",
    ),
    *_flinks("flink", (KEYED, STATEFUL), "SQL with mini-batches in two phases, or DataStream"),
    Peer("duckdb", "duckdb", "duckdb_windows", DUCKDB, (WINDOWS,), "one query, 2 threads, no fault tolerance"),
    Peer(
        "bytewax",
        "bytewax",
        "bytewax",
        BYTEWAX,
        (WINDOWS,),
        f"{BYTEWAX_SETTING}; fold_window",
        most_rows={WINDOWS: 100_000},
    ),
    *_flinks("flink_windows", (WINDOWS,), "SQL window functions in two phases"),
    *_flinks("flink_windows", (TIMERS,), "DataStream"),
    Peer(
        "pyflink",
        "pyflink",
        "pyflink_async",
        FLINK,
        (ASYNC,),
        "AsyncDataStream.unordered_wait, without a timeout, which would take a thread per record; a counter in a keyed "
        f"function behind it, as an AsyncFunction has no keyed state; process mode, parallelism 1, {CHECKPOINTED}",
        most_rows={ASYNC: 100_000},
        needs="from pyflink.datastream import AsyncDataStream",
    ),
    Peer(
        "pathway",
        "pathway",
        "pathway",
        PATHWAY,
        (ASYNC,),
        "an async UDF with async_executor(capacity), and groupby(key).reduce behind it, as a UDF has no state; one "
        "worker, no persistence, so no checkpoints",
        needs="import pathway; pathway.udfs.async_executor",
    ),
)


def choose(names: str, workload: str, cluster: str) -> list[Peer]:
    """The peers of a comma-separated list that run this workload. Raises BadParameter for an unknown word."""
    known = {word for peer in PEERS for word in (peer.chosen_by, peer.name)}
    return [
        peer
        for word in peer_words(names, known)
        for peer in PEERS
        if word in (peer.chosen_by, peer.name) and workload in peer.workloads and cluster in peer.clusters
    ]


def peer_words(names: str, known: Collection[str]) -> list[str]:
    """The words of a comma-separated list. Raises BadParameter for one that is not known."""
    words = [word for word in names.replace(" ", "").split(",") if word]
    for word in words:
        if word not in known:
            raise click.BadParameter(f"wanted some of {','.join(sorted(known))}, found {word!r}", param_hint="--peers")
    return words


def peer_sides(peers: Sequence[Peer], data: Dataset, cache: Path, workload: str) -> list[Side]:
    """Install what is missing, make the data of those that get fewer rows, and say how to run each."""
    return [_side(peer, data, cache, workload) for peer in peers]


def timed_peer_sides(
    peers: Sequence[Peer], data: Dataset, cache: Path, workload: str, shape: str, rate: int
) -> list[Side]:
    """The same for rows with event times."""
    return [_timed_side(peer, data, cache, workload, shape, rate) for peer in peers]


def _timed_side(peer: Peer, data: Dataset, cache: Path, workload: str, shape: str, rate: int) -> Side:
    rows = min(data.rows, peer.most_rows.get(workload, data.rows))
    sets = [timed_dataset(cache, each, data.keys, rate) for each in (rows, min(rows, WARM_UP_ROWS))]
    inputs = [packed_pairs(each) if peer.reads == "pairs" else _input_of(peer, each) for each in sets]
    return _with_warm_up(peer, sets[0], cache, inputs, {"shape": shape})


def _side(peer: Peer, data: Dataset, cache: Path, workload: str) -> Side:
    rows = min(data.rows, peer.most_rows.get(workload, data.rows))
    own = dataset(cache, rows, data.keys)
    warm_up = dataset(cache, min(rows, WARM_UP_ROWS), data.keys)
    inputs = [raw_pairs(each) if peer.reads == "pairs" else _input_of(peer, each) for each in (own, warm_up)]
    return _with_warm_up(peer, own, cache, inputs, {})


def _input_of(peer: Peer, data: Dataset) -> Path:
    return whole_halves(data) if peer.reads == "halves" else data.parquet


def _with_warm_up(peer: Peer, data: Dataset, cache: Path, inputs: Sequence[Path], options: dict[str, object]) -> Side:
    python = python_of(peer.environment, cache)
    return Side(
        peer.name,
        [str(python), "-P", "-m", f"benchmarks.peers.{peer.module}"],
        data,
        {
            **peer.options,
            **options,
            "cache": str(cache),
            "format": INPUTS[peer.reads],
            "input": str(inputs[0]),
            "warm_up": str(inputs[1]),
        },
        setting=peer.setting,
    )
