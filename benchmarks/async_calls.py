"""Coroutines in operators: awaits of 50 ms, 10,000 in flight, with a counter per key; and coroutines that never wait.

The first against a bare asyncio program, which keeps no state, and against peers' ways; the second against the same
operator without a coroutine, in turn. `--kills` adds a run under SIGKILLs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq

from .contest import Score, Side, compared, compete, problems_of
from .data import Dataset
from .even_data import even_dataset, even_pairs, numbered_answer, totals_answer
from .measure import Measured, measure
from .peers_known import ASYNC, Peer, choose
from .recovery import check_records
from .report import contest_options, finish, spread
from .side import Order
from .venvs import python_of

WORKLOAD = ASYNC
KILLED_RECORDS_PER_S = 20_000
KILLED_CHECKPOINT_MS = 250
KILLED_WAIT_MS = 500
"""At that pace 10,000 are in flight."""
SECONDS_BEFORE_KILLS, SECONDS_PER_KILL = 3.0, 1.5


@dataclass(frozen=True)
class Waiting:
    """What each record waits for, and how many do at a time."""

    wait_ms: int
    in_flight: int

    def told(self) -> dict[str, int]:
        return {"wait_ms": self.wait_ms, "in_flight": self.in_flight}


def check(order: Order, measured: Measured) -> list[str]:
    """Each record once, and each with its number within its key; of a side that has no numbers, the totals."""
    problems, data = [], order.data
    if (outputs := measured.said.get("outputs")) != data.rows:
        problems.append(f"{outputs} outputs for {data.rows} inputs")
    right = _totals(data) if measured.said.get("answers") == "totals" else _numbers(data)
    if (found := measured.said.get("digest")) != right:
        problems.append(f"the outputs' digest is {found}, wanted {right}")
    return problems


def check_killed(said: dict[str, Any], found: Any, options: dict[str, Any]) -> list[str]:
    """What is wrong after the kills, and nothing when all is exact."""
    problems = check_records(found, options["rows"], options["keys"])
    if said["killed"] < options["kills"]:
        problems.append(f"only {said['killed']} of {options['kills']} kills happened before the job ended")
    if said["begun"] < options["rows"]:
        problems.append(f"{said['begun']} coroutines were begun for {options['rows']} records")
    return problems


def ours(data: Dataset, operator: str, name: str, options: dict[str, Any], what: str) -> Side:
    """`operator`: "waits", "never-waits" or "plain"."""
    command = [sys.executable, "-m", "benchmarks.sides.async_calls"]
    setting = f"1 TaskManager (local), exactly once, checkpoint every 1 s; {what}"
    own = {"operator": operator, "task_managers": 1, "parallelism": 1}
    return Side(name, command, data, own | options, setting=setting)


def bare(data: Dataset, waiting: Waiting) -> Side:
    command = [sys.executable, "-m", "benchmarks.sides.bare_asyncio"]
    setting = "one process: a semaphore, a task per record, a dict; no fault tolerance"
    return Side("bare-asyncio", command, data, dict(waiting.told()), setting=setting)


def waiting_sides(data: Dataset, waiting: Waiting) -> list[Side]:
    return [ours(data, "waits", "understudy", dict(waiting.told()), "async def process"), bare(data, waiting)]


def busy_sides(data: Dataset) -> list[Side]:
    return [
        ours(data, "never-waits", "never-waits", {}, "async def process that never waits"),
        ours(data, "plain", "no-coroutine", {}, "def process"),
    ]


def peer_sides(
    peers: Sequence[Peer], data: Dataset, cache: Path, waiting: Waiting
) -> tuple[list[Side], dict[str, str]]:
    """Those that can be had here, and why the others cannot."""
    sides, missing = [], {}
    for peer in peers:
        rows = min(data.rows, peer.most_rows.get(WORKLOAD, data.rows))
        own = even_dataset(cache, rows, data.keys)
        try:
            python = str(python_of(peer.environment, cache))
            subprocess.run([python, "-c", peer.needs], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            missing[peer.name] = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            continue
        command = [python, "-P", "-m", f"benchmarks.peers.{peer.module}"]
        options = {**waiting.told(), "cache": str(cache), "pairs": str(even_pairs(own))}
        sides.append(Side(peer.name, command, own, options, setting=peer.setting))
    return sides, missing


def details(score: Score) -> dict[str, Any]:
    """What only ours says: threads, and what stood still for checkpoints with how many records in flight."""
    said = [one.said for one in score.measured]
    sync_ms = [each for one in said for each in one["sync_ms"]]
    in_flight = [each for one in said for each in one["at_barriers"]]
    return {
        "threads": max((one["threads"] for one in said), default=None),
        **spread("sync_ms", sync_ms),
        **spread("in_flight_at_barriers", in_flight),
    }


def killed_case(kills: int, keys: int, in_flight: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """The coroutines that wait, at a pace, while TaskManagers are killed."""
    options = {
        "kills": kills,
        "keys": keys,
        "rows": int(KILLED_RECORDS_PER_S * (SECONDS_BEFORE_KILLS + SECONDS_PER_KILL * kills)),
        "in_flight": in_flight,
        "wait_ms": KILLED_WAIT_MS,
        "records_per_second": KILLED_RECORDS_PER_S,
        "checkpoint_interval_ms": KILLED_CHECKPOINT_MS,
        "seed": seed,
    }
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, options)
        said = measure([sys.executable, "-m", "benchmarks.sides.async_calls", order.to_argument()]).said
        problems = check_killed(said, pq.read_table(out / "counted"), options)
    case = {
        "rows": options["rows"],
        "wait_ms": KILLED_WAIT_MS,
        "killed": said["killed"],
        "asked_again": said["begun"] - options["rows"],
        "most_in_flight_at_a_barrier": max(said["at_barriers"], default=0),
        **spread("kill_to_result_ms", said["recovery_ms"]),
        "checked": not problems,
    }
    click.echo(f"{'killed':>16}  {case}", err=True)
    return case, [f"under kills: {problem}" for problem in problems]


@click.command(WORKLOAD)
@click.option("--rows", default=400_000, show_default=True, type=click.IntRange(1), help="Of coroutines that wait.")
@click.option("--busy-rows", default=2_000_000, show_default=True, type=click.IntRange(1), help="Of those that do not.")
@click.option("--keys", default=50_000, show_default=True, type=click.IntRange(1), help="More than are in flight.")
@click.option("--in-flight", default=10_000, show_default=True, type=click.IntRange(1))
@click.option("--wait-ms", default=50, show_default=True, type=click.IntRange(0))
@click.option("--kills", default=0, show_default=True, type=click.IntRange(0), help="In a run of its own.")
@click.option("--seed", default=1, show_default=True, help="Fixes the moments and victims of the kills.")
@contest_options
def async_calls(
    rows: int,
    busy_rows: int,
    keys: int,
    in_flight: int,
    wait_ms: int,
    kills: int,
    seed: int,
    peers: str,
    runs: int,
    json_path: str | None,
    data_dir: Path,
) -> None:
    """Coroutines that wait, with a counter per key, against bare asyncio and peers; and coroutines that never wait."""
    if keys < in_flight:
        raise click.BadParameter(f"wanted at least the {in_flight} in flight, found {keys}", param_hint="--keys")
    waiting = Waiting(wait_ms, in_flight)
    data = even_dataset(data_dir, rows, keys)
    theirs, missing = peer_sides(choose(peers, WORKLOAD, "local"), data, data_dir, waiting)
    waits = compete(WORKLOAD, [*waiting_sides(data, waiting), *theirs], runs, check)
    busy = compete(WORKLOAD, busy_sides(even_dataset(data_dir, busy_rows, keys)), runs, check)
    problems = problems_of([*waits, *busy])
    figures = {**compared(waits), **details(waits[0]), "unavailable": missing, "never_waits": compared(busy)}
    if kills:
        figures["killed"], wrong = killed_case(kills, keys, in_flight, seed)
        problems += wrong
    finish({"workload": WORKLOAD, "cluster": "local", "keys": keys, **waiting.told()}, figures, problems, json_path)


@cache
def _numbers(data: Dataset) -> str:
    return f"{numbered_answer(data):016x}"


@cache
def _totals(data: Dataset) -> str:
    return f"{totals_answer(data):016x}"
