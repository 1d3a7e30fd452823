"""`understudy simulate`: very many simulated histories with faults, each of them from one seed; and what to do about
one that fails: replay it, read its story, stop in it, shrink it, and compare it with another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import click
from rich.console import Console

from ..simulation.histories.campaign import Figures, Plan, quiet, run_campaign
from ..simulation.histories.catalogue import CATALOGUE
from ..simulation.histories.divergence import Divergence, divergence
from ..simulation.histories.verdict import Verdict, replay
from ..simulation.histories.watchdog import HUNG, Watchdog
from ..simulation.world.trace import Trace
from .groups import CommandGroup
from .simulate_debugger import debug
from .simulate_display import Progress, coverage_table, table
from .simulate_report import Failures, campaign_json, header, tell_history

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT."""

FILE = click.Path(dir_okay=False, path_type=Path)


class _Simulate(CommandGroup):
    """A second topology behind `--topology` is not taken for a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in CATALOGUE:
            ctx.fail(f"--topology takes one name, and {args[0]!r} is a second one: write --topology {args[0]}, too")
        return super().resolve_command(ctx, args)


@click.group(cls=_Simulate, invoke_without_command=True)
@click.option("--seeds", type=click.IntRange(1), help="How many histories.  [default: 1000]")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="M",
    help="As many histories as fit into M minutes, in place of a number.",
)
@click.option("--first-seed", type=int, help="The seed of the first one; the others follow.  [default: 0]")
@click.option("--seed", type=int, help="One history only; print its story.")
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    type=click.Choice(sorted(CATALOGUE)),
    help="May be repeated: they take turns. Without it each seed chooses among all.",
)
@click.option("--coverage", is_flag=True, help="Count the situations that the histories reach.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1))
@click.option("--stop-after", type=click.IntRange(1), help="End after this number of failed histories.  [default: 1]")
@click.option("--keep-going", is_flag=True, help="Never end before the last seed.")
@click.option("--shrink/--no-shrink", default=True, help="Look for a smaller scenario that fails in the same way.")
@click.option("--json", "json_path", type=FILE, help="Write the figures to this file.")
@click.option(
    "--trace", "trace_path", type=FILE, help="Write all that happened in the one, or the first failed, history."
)
@click.option("--pdb", is_flag=True, help="With --seed: stop in the debugger when the first oracle breaks.")
@click.option("--break-at", type=click.FloatRange(0), metavar="MS", help="With --pdb: stop at this virtual time.")
@click.pass_context
def simulate(
    context: click.Context,
    seeds: int | None,
    minutes: float | None,
    first_seed: int | None,
    seed: int | None,
    topologies: tuple[str, ...],
    coverage: bool,
    processes: int,
    stop_after: int | None,
    keep_going: bool,
    shrink: bool,
    json_path: Path | None,
    trace_path: Path | None,
    pdb: bool,
    break_at: float | None,
) -> None:
    """Run whole clusters on virtual time, break them, and check what they commit.

    Exit code 1 means that an oracle broke, 2 wrong usage, 3 that a history hung in real time.
    """
    if context.invoked_subcommand is not None:
        return
    if seed is not None and (seeds is not None or first_seed is not None):
        raise click.UsageError("--seed runs one history, --seeds and --first-seed run many: leave out one or the other")
    if minutes is not None and (seeds is not None or seed is not None):
        raise click.UsageError(
            "--minutes takes as many histories as fit, --seeds and --seed say which: leave out one or the other"
        )
    if coverage and seed is not None:
        raise click.UsageError("--coverage counts over many histories, --seed runs one: leave out one or the other")
    if keep_going and stop_after is not None:
        raise click.UsageError("--keep-going and --stop-after contradict each other: leave out one")
    if (pdb and seed is None) or (break_at is not None and not pdb):
        raise click.UsageError("--pdb needs --seed, and --break-at needs --pdb")
    one = seed is not None
    plan = Plan(
        first_seed=seed if seed is not None else first_seed or 0,
        seeds=1 if one else seeds or (1000 if minutes is None else None),
        topologies=topologies,
        processes=1 if one else processes,
        stop_after=None if keep_going else stop_after or 1,
        covers=coverage and not one,
        minutes=minutes,
    )
    if pdb:
        raise SystemExit(debug(plan.scenario(plan.first_seed), break_at))
    failures = Failures(shrink)
    figures = _one(plan, failures, trace_path) if one else _many(plan, failures, trace_path)
    if json_path:
        _write(json_path, [json.dumps(campaign_json(plan, figures, failures), indent=2)])
    raise SystemExit(1 if figures.violations else 0)


def _one(plan: Plan, failures: Failures, trace_path: Path | None) -> Figures:
    figures = Figures()
    started = time.perf_counter()
    verdict, trace = _replay(plan, plan.first_seed)
    figures.seconds = time.perf_counter() - started
    figures.add(verdict)
    _write_trace(trace_path, verdict, trace)
    if verdict.broken is None:
        _say(tell_history(verdict, trace))
    else:
        _say(failures.report(verdict, trace))
    return figures


def _many(plan: Plan, failures: Failures, trace_path: Path | None) -> Figures:
    console = Console(highlight=False)
    try:
        with Progress(console, plan.seeds, plan.minutes) as progress:
            figures = run_campaign(plan, told=progress.told)
    except BrokenProcessPool:
        click.echo("a process of the campaign has ended; what it said is above", err=True)
        raise SystemExit(HUNG) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    for number, verdict in enumerate(figures.failed):
        trace = _replay(plan, verdict.scenario.seed)[1] if failures.is_new(verdict) or number == 0 else None
        if number == 0 and trace is not None:
            _write_trace(trace_path, verdict, trace)
        _say(failures.report(verdict, trace))
    console.print(table(figures))
    if plan.covers:
        console.print(coverage_table(figures))
    return figures


def _replay(plan: Plan, seed: int) -> tuple[Verdict, Trace]:
    with quiet(), Watchdog() as watchdog, watchdog.watching(f"seed {seed}"):
        return replay(plan.scenario(seed))


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _write_trace(path: Path | None, verdict: Verdict, trace: Trace) -> None:
    if path is not None:
        _write(path, [header(verdict.scenario), *trace.lines()])


def _write(path: Path, lines: Iterable[str]) -> None:
    try:
        path.write_text("".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error}") from None


# ---- diff


@simulate.command()
@click.argument("one")
@click.argument("other")
@click.option("--topology", type=click.Choice(sorted(CATALOGUE)), help="For seeds.")
def diff(one: str, other: str, topology: str | None) -> None:
    """Show where two histories part. Each is a file that --trace wrote, or a seed, which is run now.

    Exit code 0 means that they are the same, 1 that they are not, 2 that one of them cannot be read.
    """
    found = divergence(_lines(one, topology), _lines(other, topology))
    if found is None:
        click.echo("the same")
        raise SystemExit(0)
    _say(_divergence_lines(found, one, other))
    raise SystemExit(1)


def _lines(what: str, topology: str | None) -> Iterator[str]:
    """A trace without its heading, which says of what scenario it is."""
    if not Path(what).exists() and what.lstrip("-").isdecimal():
        plan = Plan(int(what), 1, (topology,) if topology else ())
        return _replay(plan, plan.first_seed)[1].lines()
    try:
        lines = Path(what).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {what}: {error}") from None
    return (line for line in lines if not line.startswith("#"))


def _divergence_lines(found: Divergence, one: str, other: str) -> Iterator[str]:
    yield f"the first {found.common} lines are the same; the last of them:"
    yield from (f"  {line}" for line in found.before)
    for name, lines in ((one, found.one), (other, found.other)):
        yield f"then in {name}:"
        yield from (f"  {line}" for line in lines or ("it ends here",))
