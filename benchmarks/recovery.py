"""How long a job takes to come back: from the SIGKILL of a TaskManager to the first batch processed after the restore.

Two TaskManagers count records by key, and every record goes from one to the other's channels. A saboteur kills one of
them at random moments, again and again; in the end every record must have been counted exactly once. With more keys
more state has to be restored.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .data import Dataset
from .measure import Measured, SideFailed, measure
from .report import finish, over_cases, shared_options, spread
from .side import Order

WORKLOAD = "recovery"
KEYS = 1_000
RECORDS_PER_SECOND = 20_000
CHECKPOINT_INTERVAL_MS = {False: 250, True: 1000}
"""Without and with a state that is filled first."""
SECONDS = {"local": (3.0, 1.5), "spark": (4.0, 2.5)}
"""How long a job is made to take after that: so much, and so much for each kill."""
KEYS_PER_SECOND = 400_000
"""At least so many can be restored, and written in a checkpoint, while other work is going on."""


@dataclass(frozen=True)
class Options:
    """One job. `state`: "records" or "columns"."""

    cluster: str
    master: str
    state: str
    keys: int
    kills: int
    seed: int

    @property
    def fill(self) -> int:
        """So many records come first, one for each key; none where those that follow do that within a second."""
        return self.keys if self.keys > RECORDS_PER_SECOND else 0

    @property
    def rows(self) -> int:
        """All records of the job."""
        base, per_kill = SECONDS[self.cluster]
        if self.fill:
            per_kill += (CHECKPOINT_INTERVAL_MS[True] - CHECKPOINT_INTERVAL_MS[False]) / 1000
            per_kill += 2 * self.keys / KEYS_PER_SECOND
        return self.fill + int(RECORDS_PER_SECOND * (base + per_kill * self.kills))

    def told(self) -> dict[str, Any]:
        """What the process that runs the job is told."""
        interval = CHECKPOINT_INTERVAL_MS[self.fill > 0]
        pace = {"records_per_second": RECORDS_PER_SECOND, "checkpoint_interval_ms": interval}
        return {**asdict(self), **pace, "fill": self.fill, "rows": self.rows}


@dataclass(frozen=True)
class Outcome:
    """One job, over: what its process said, and what is wrong with its answer."""

    measured: Measured
    problems: list[str]

    @property
    def recoveries(self) -> list[dict[str, int]]:
        """Milliseconds from each kill to `lost`, `registered`, `first_batch` and `all`."""
        found: list[dict[str, int]] = self.measured.said["recoveries"]
        return found


def run(options: Options) -> Outcome:
    """One job, with all its kills, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, options.told())
        measured = measure([sys.executable, "-m", "benchmarks.sides.recovery", order.to_argument()])
        return Outcome(measured, check(measured.said, pq.read_table(out / "counted"), options))


def check(said: dict[str, Any], found: pa.Table, options: Options) -> list[str]:
    """What is wrong with the answer, and nothing when it is exact."""
    problems = []
    if said["killed"] < options.kills:
        problems.append(f"only {said['killed']} of {options.kills} kills happened before the job ended")
    if len(said["recoveries"]) < said["killed"]:
        problems.append(f"{len(said['recoveries'])} recoveries from {said['killed']} kills")
    judge = check_records if options.state == "records" else check_columns
    return problems + judge(found, options.rows, options.keys)


def check_records(found: pa.Table, rows: int, keys: int) -> list[str]:
    """Every record once, and those of each key numbered 1, 2, 3, …"""
    ids, of_keys, numbers = (found[name].to_numpy() for name in ("id", "key", "number"))
    if not np.array_equal(np.sort(ids), np.arange(rows)):
        return [f"{len(ids)} records, {len(np.unique(ids))} of them distinct; wanted {rows}"]
    if not np.array_equal(ids % keys, of_keys):
        return ["records were counted for keys that are not theirs"]
    if not np.array_equal(numbers[np.lexsort((numbers, of_keys))], _numbered(np.sort(of_keys))):
        return ["the records of a key are not numbered 1, 2, 3, ..."]
    return []


def check_columns(found: pa.Table, rows: int, keys: int) -> list[str]:
    """No count of a key was told twice, and the greatest is of all its records, whose ids sum up to what they must."""
    of_keys, numbers, sums = (found[name].to_numpy() for name in ("key", "number", "ids"))
    order = np.lexsort((numbers, of_keys))
    of_keys, numbers, sums = of_keys[order], numbers[order], sums[order]
    if len(of_keys) and bool(np.any((np.diff(of_keys) == 0) & (np.diff(numbers) == 0))):
        return ["a count of a key was told twice"]
    last = np.flatnonzero(np.diff(of_keys, append=-1))
    every = np.arange(keys)
    counts = rows // keys + (every < rows % keys)
    wanted = counts * every + keys * (counts * (counts - 1) // 2)
    if not np.array_equal(of_keys[last], every):
        return [f"{len(last)} keys were counted; wanted {keys}"]
    if not (np.array_equal(numbers[last], counts) and np.array_equal(sums[last], wanted)):
        return ["the last counts and sums of the keys are not those of all records"]
    return []


def case_of(outcomes: Sequence[Outcome], options: Options) -> dict[str, Any]:
    """The figures of one number of keys."""
    recoveries = [recovery for outcome in outcomes for recovery in outcome.recoveries]
    took = [recovery["first_batch"] for recovery in recoveries]
    rates = [options.rows / outcome.measured.seconds for outcome in outcomes]
    return {
        "keys": options.keys,
        "state": options.state,
        "rows": options.rows,
        "rows_per_s": round(median(rates)),
        "kills": sum(outcome.measured.said["killed"] for outcome in outcomes),
        "recovery_ms": took,
        **spread("ms", took),
        "phases_ms": phases(recoveries),
        **spread("ms_to_all", [recovery["all"] for recovery in recoveries]),
        "state_bytes": max(outcome.measured.said["state_bytes"] for outcome in outcomes),
        "checkpoint_ms": median([ms for outcome in outcomes for ms in outcome.measured.said["checkpoint_ms"]] or [0]),
        "wall_s": round(median(outcome.measured.wall_s for outcome in outcomes), 2),
        "peak_rss_mb": round(max(outcome.measured.peak_rss_mb for outcome in outcomes)),
        "checked": not any(outcome.problems for outcome in outcomes),
    }


def phases(recoveries: Sequence[dict[str, int]]) -> dict[str, float]:
    """Medians: from the kill to its detection, to the next TaskManager's registration, to the first batch."""
    steps = [
        {
            "detect": one["lost"],
            "restart": one["registered"] - one["lost"],
            "restore": one["first_batch"] - one["registered"],
        }
        for one in recoveries
        if one["lost"] and one["registered"]
    ]
    return {phase: median(step[phase] for step in steps) for phase in (steps[0] if steps else ())}


def report(cases: Sequence[dict[str, Any]], runs: int, versions: dict[str, str]) -> dict[str, Any]:
    """All figures; those of an only case beside `cases` too."""
    return {
        **(cases[0] if len(cases) == 1 else over_cases(cases)),
        "runs": runs,
        "cases": list(cases),
        "checked": all(case["checked"] for case in cases),
        "versions": versions,
    }


def _numbered(keys: Any) -> Any:
    """1, 2, 3, … for each run of equal keys."""
    starts = np.searchsorted(keys, keys)
    return np.arange(len(keys)) - starts + 1


@click.command(WORKLOAD)
@click.option("--cluster", default="local", show_default=True, type=click.Choice(["local", "spark"]))
@click.option("--master", default="local[2]", show_default=True, help="Spark master of this machine.")
@click.option("--keys", default=str(KEYS), show_default=True, help="Comma-separated: keys whose state is restored.")
@click.option("--state", default="records", show_default=True, type=click.Choice(["records", "columns"]))
@click.option("--kills", default=5, show_default=True, type=click.IntRange(1), help="Kills in each job.")
@click.option("--seed", default=1, show_default=True, help="Fixes the moments and victims of the kills.")
@shared_options
def recovery(
    cluster: str, master: str, keys: str, state: str, kills: int, seed: int, runs: int, json_path: str | None
) -> None:
    """From the SIGKILL of a TaskManager to the first batch processed after the restore."""
    cases: list[dict[str, Any]] = []
    problems: list[str] = []
    versions: dict[str, str] = {}
    for number in map(int, keys.split(",")):
        options = Options(cluster, master, state, number, kills, seed)
        try:
            outcomes = [run(replace(options, seed=seed + one)) for one in range(runs)]
        except SideFailed as error:
            cases.append({"keys": number, "checked": False})
            problems.append(f"{number} keys: {error}")
            continue
        cases.append(case_of(outcomes, options))
        problems += [f"{number} keys: {problem}" for outcome in outcomes for problem in outcome.problems]
        versions |= outcomes[-1].measured.said["versions"]
        click.echo(f"{number:>12,} keys  {cases[-1]['median_ms']} ms  {cases[-1]['phases_ms']}", err=True)
    named = cluster if cluster == "local" else f"spark {master}"
    heading = {"workload": WORKLOAD, "cluster": named, "task_managers": 2, "seed": seed}
    finish(heading, report(cases, runs, versions), problems, json_path)
