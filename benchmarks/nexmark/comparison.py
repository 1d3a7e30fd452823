"""`python -m benchmarks nexmark`: our side, DuckDB and Flink SQL, query by query, in turn, every answer compared."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import pyarrow.parquet as pq

from ..contest import Side, compared, compete, problems_of
from ..data import Dataset
from ..measure import Measured, SideFailed, measure
from ..peers_known import DUCKDB, FLINK, choose
from ..report import contest_options, finish, over_cases, spread
from ..side import Order
from ..venvs import python_of
from . import flink_sql, oracle
from .answers import EMPTY, Digest, answer_in, digest_of_table
from .dataset import dataset, raw_columns
from .model import STREAMS, Model, number_columns
from .queries import QUERIES
from .query import Query

WORKLOAD = "nexmark"
WINDOW_END = "window_end"
"""The column by which results say their window."""
GENERATOR = "generator"
WARM_UP_EVENTS = 200_000
KILLED_EVENTS_PER_S = 20_000
KILLED_CHECKPOINT_MS = 250
SECONDS_BEFORE_KILLS, SECONDS_PER_KILL = 3.0, 1.5
MODULES = {"duckdb": (DUCKDB, "nexmark_duckdb"), "flink": (FLINK, "nexmark_flink")}
SETTINGS = {
    "understudy": "2 TaskManagers (local), exactly once, checkpoint every 1 s, from Parquet if not generated",
    "duckdb": "one query, 2 threads, no fault tolerance",
    "flink": "SQL (Java), parallelism 2 in one process, mini-batches, exactly once, checkpoint every 1 s, raw columns",
}


class Answers:
    """The right ones, each computed once."""

    def __init__(self, folder: Path) -> None:
        self._connection = oracle.connect(folder)
        self._known: dict[str, Digest] = {}

    def of(self, query: Query) -> Digest:
        if query.name not in self._known:
            table = oracle.answer_of(self._connection, query.name, query.compared)
            self._known[query.name] = digest_of_table(table, query.compared)
        return self._known[query.name]

    def check(self, order: Order, _measured: Measured) -> list[str]:
        """What is wrong with the answer of one run of one side."""
        return self.compare(QUERIES[order.options["query"]], order.out)

    def compare(self, query: Query, out: Path) -> list[str]:
        found = _of_files(out / "files", query) if (out / "files").is_dir() else answer_in(out)
        if found is None:
            return [f"{query.name}: no answer"]
        wanted = self.of(query)
        return [] if found == wanted else [f"{query.name}: found {found}, wanted {wanted}"]


def _of_files(folder: Path, query: Query) -> Digest:
    """The digest of CSV files, with or without a line of names, and with columns in the names of their folders."""
    files = [str(path) for path in folder.rglob("part-*") if path.is_file() and path.stat().st_size]
    if not files:
        return Digest(0, 0)
    parted = any("=" in path for path in files)
    kinds = {"dt": "VARCHAR", "hm": "VARCHAR", "extra": "VARCHAR", "date_time": "TIMESTAMP_MS"}
    columns = {name: kinds.get(name, "BIGINT") for name in query.compared[: 5 if parted else None]}
    read = f"read_csv({files}, header = {not parted}, columns = {columns}, filename = {parted})"
    names = ", ".join(columns)
    if parted:
        names += r", regexp_extract(filename, '=([0-9-]{10})/', 1) AS dt"
        names += r", replace(regexp_extract(filename, '=([0-9]{2}(:|%3A)[0-9]{2})/', 1), '%3A', ':') AS hm"
    with duckdb.connect() as connection:
        found = oracle.table_of(connection, f"SELECT {names} FROM {read}")
    return digest_of_table(found, query.compared)


def sides_of(query: Query, model: Model, source: str, peers: Sequence[str], cache: Path) -> list[Side]:
    """Ours first; a peer that does not know the query is left out."""
    data = Dataset(dataset(cache, model), model.events, 0)
    options: dict[str, Any] = {
        "query": query.name,
        "compared": list(query.compared),
        "writes_files": query.writes_files,
        "model": model.to_plain(),
        "source": source,
        "cache": str(cache),
    }
    sides = [Side("understudy", [sys.executable, "-m", "benchmarks.sides.nexmark"], data, options)]
    for name in peers:
        if name == "flink" and query.name not in flink_sql.SELECTS:
            continue
        environment, module = MODULES[name]
        more = {}
        if name == "flink":
            warm_up = dataset(cache, Model(min(model.events, WARM_UP_EVENTS), model.rate, model.seed))
            raw_columns(data.folder)
            raw_columns(warm_up)
            more["warm_up"] = str(warm_up)
        command = [str(python_of(environment, cache)), "-P", "-m", f"benchmarks.peers.{module}"]
        sides.append(Side(name, command, data, options | more))
    return sides


def generator_cases(model: Model, runs: int, cache: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """What the generator alone makes in one process, without texts and with them; rows_per_s is per CPU second."""
    folder = dataset(cache, model)
    wanted = EMPTY
    for stream in STREAMS:
        table = pq.read_table(folder / f"{stream}.parquet", columns=number_columns(stream))
        wanted += digest_of_table(table, number_columns(stream))

    def check(order: Order, _measured: Measured) -> list[str]:
        found = answer_in(order.out)
        return [] if found == wanted else [f"found {found}, wanted {wanted}"]

    command = [sys.executable, "-m", "benchmarks.sides.nexmark_generator"]
    data = Dataset(folder, model.events, 0)
    sides = [
        Side(name, command, data, {"model": model.to_plain(), "texts": texts})
        for name, texts in (("numbers", False), ("all columns", True))
    ]
    scores = compete(WORKLOAD, sides, runs, check)
    cases = [{"query": f"{GENERATOR}, {score.side.name}", **score.report()} for score in scores]
    for case in cases:
        case["rows_per_cpu_s"] = case.get("rows_per_s")
    return cases, problems_of(scores)


@dataclass(frozen=True)
class Plan:
    """What is run of each query. `kills` and `latency_seconds`: a run of ours of its own for each; 0: none."""

    model: Model
    source: str
    peers: Sequence[str]
    runs: int
    kills: int
    seed: int
    latency_seconds: int
    cache: Path

    def case_of(self, query: Query, answers: Answers) -> tuple[dict[str, Any], list[str]]:
        """The figures of a query, and what went wrong."""
        sides = sides_of(query, self.model, self.source, self.peers, self.cache)
        scores = compete(WORKLOAD, sides, self.runs, answers.check)
        figures, problems = compared(scores), problems_of(scores)
        for report in (figures, *figures.get("peers", {}).values()):
            report.pop("setting")  # the same for all queries
        try:
            if self.kills:
                told, wrong = killed_case(query, self.model, self.kills, self.seed, self.cache)
                figures |= told | {"checked": figures["checked"] and not wrong}
                problems += wrong
            if self.latency_seconds and WINDOW_END in query.compared:
                figures |= paced_case(query, self.model, self.latency_seconds)
        except SideFailed as error:
            figures["checked"] = False
            problems.append(f"{query.name}: {error}")
        return {"query": query.name, **figures}, problems


def killed_case(query: Query, model: Model, kills: int, seed: int, cache: Path) -> tuple[dict[str, Any], list[str]]:
    """The query at a pace while TaskManagers are killed: how long until the next result, and whether all is right."""
    events = int(KILLED_EVENTS_PER_S * (SECONDS_BEFORE_KILLS + SECONDS_PER_KILL * kills))
    short = Model(**{**model.to_plain(), "events": events})
    folder = dataset(cache, short)
    options = {
        "query": query.name,
        "model": short.to_plain(),
        "kills": kills,
        "seed": seed,
        "events_per_second": KILLED_EVENTS_PER_S,
        "checkpoint_interval_ms": KILLED_CHECKPOINT_MS,
    }
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        order = Order(WORKLOAD, Dataset(folder, events, 0), Path(name), options)
        measured = measure([sys.executable, "-m", "benchmarks.sides.nexmark", order.to_argument()])
        problems = Answers(folder).compare(query, order.out)
    said = measured.said
    if said["killed"] < kills:
        problems.append(f"{query.name}: only {said['killed']} of {kills} kills happened before the job ended")
    return {"killed": said["killed"], **spread("kill_to_result_ms", said["recovery_ms"])}, problems


def paced_case(query: Query, model: Model, seconds: int) -> dict[str, Any]:
    """How long the results of windows take when a second of event time takes a second."""
    paced = Model(**{**model.to_plain(), "events": model.rate * seconds})
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        options = {"query": query.name, "model": paced.to_plain(), "paced": True}
        order = Order(WORKLOAD, Dataset(Path(name), paced.events, 0), Path(name), options)
        said = measure([sys.executable, "-m", "benchmarks.sides.nexmark", order.to_argument()]).said
    return {"window_p50_ms": said["p50_ms"], "window_p99_ms": said["p99_ms"], "window_results": said["results"]}


def summary(cases: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Per peer the geometric mean of what ours does more per processor second, over the queries that both ran."""
    ratios: dict[str, list[float]] = {}
    for case in cases:
        for name, peer in case.get("peers", {}).items():
            if "cpu_ratio" in peer:
                ratios.setdefault(name, []).append(peer["cpu_ratio"])
    return {name: round(statistics.geometric_mean(found), 2) for name, found in ratios.items()}


def table_of(cases: Sequence[Mapping[str, Any]]) -> str:
    """Thousands of events per processor second of each side, and how many times a peer's ours are."""
    names = list(dict.fromkeys(name for case in cases for name in case.get("peers", {})))
    lines = [f"{'query':>22}  {'ours':>8}" + "".join(f"  {name:>8}  {'ratio':>6}" for name in names)]
    for case in cases:
        line = f"{case['query']:>22}  {_thousands(case)}"
        for name in names:
            peer = case.get("peers", {}).get(name, {})
            ratio = peer.get("cpu_ratio")
            line += f"  {_thousands(peer)}  {'' if ratio is None else ratio:>6}"
        lines.append(line)
    return "\n".join(lines)


def _thousands(report: Mapping[str, Any]) -> str:
    found = report.get("rows_per_cpu_s")
    return f"{'' if found is None else round(found / 1000):>8}"


def chosen(queries: str) -> list[Query]:
    """Raises BadParameter for a name that is none."""
    words = [word for word in queries.replace(" ", "").split(",") if word] or list(QUERIES)
    for word in words:
        if word not in QUERIES:
            raise click.BadParameter(f"wanted some of {','.join(QUERIES)}, found {word!r}", param_hint="--queries")
    return [QUERIES[word] for word in words]


def _peers(peers: str) -> list[str]:
    """Those that run queries of Nexmark. Raises BadParameter for a name that is none."""
    choose(peers, WORKLOAD, "local")
    return [word for word in peers.replace(" ", "").split(",") if word in MODULES]


@click.command(WORKLOAD)
@click.option("--queries", default="", help="Comma-separated, as q0,q5. Default: all.")
@click.option("--events", default=2_000_000, show_default=True, type=click.IntRange(1), help="Of all three streams.")
@click.option("--rate", default=10_000, show_default=True, type=click.IntRange(1), help="Per second of event time.")
@click.option("--seed", default=1, show_default=True, help="Fixes all events.")
@click.option(
    "--group", default=1, show_default=True, type=click.IntRange(1), help="Times are shuffled within so many."
)
@click.option(
    "--late-share", default=0.0, show_default=True, type=click.FloatRange(0, 1), help="Of events out of turn."
)
@click.option("--late-ms", default=0, show_default=True, type=click.IntRange(0), help="By how much they are at most.")
@click.option("--upstream-bidders", is_flag=True, help="With the mistake of the original: bidders are no persons.")
@click.option("--source", default="stored", show_default=True, type=click.Choice(["stored", "generated"]))
@click.option("--kills", default=0, show_default=True, type=click.IntRange(0), help="A run of its own per query.")
@click.option("--latency-seconds", default=0, show_default=True, help="A paced run for each query of windows.")
@contest_options
def nexmark(
    queries: str,
    events: int,
    rate: int,
    seed: int,
    group: int,
    late_share: float,
    late_ms: int,
    upstream_bidders: bool,
    source: str,
    kills: int,
    latency_seconds: int,
    peers: str,
    runs: int,
    json_path: str | None,
    data_dir: Path,
) -> None:
    """The queries of Nexmark, against DuckDB and Flink SQL."""
    model = Model(
        events, rate, seed, group=group, late_share=late_share, late_ms=late_ms, upstream_bidders=upstream_bidders
    )
    plan = Plan(model, source, _peers(peers), runs, kills, seed, latency_seconds, data_dir)
    click.echo(model.density, err=True)
    click.echo(GENERATOR, err=True)
    cases, problems = generator_cases(model, runs, data_dir)
    answers = Answers(dataset(data_dir, model))
    for query in chosen(queries):
        click.echo(query.name, err=True)
        case, wrong = plan.case_of(query, answers)
        cases.append(case)
        problems += wrong
    click.echo(table_of(cases), err=True)
    heading = {"workload": WORKLOAD, "density": model.density, "source": source, "model": model.to_plain()}
    figures = {
        **over_cases(cases),
        "runs": runs,
        "geometric_means": summary(cases),
        "settings": SETTINGS,
        "cases": cases,
        "checked": all(case["checked"] for case in cases),
        "versions": {name: version for case in cases for name, version in _versions(case)},
    }
    finish(heading, figures, problems, json_path)


def _versions(case: Mapping[str, Any]) -> list[tuple[str, str]]:
    reports = (case, *case.get("peers", {}).values())
    return [found for report in reports for found in report.get("versions", {}).items()]
