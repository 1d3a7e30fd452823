"""`understudy run`: a program on a cluster of its own, in this process, until the job ends. Flink: the CLI's run."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shlex
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import IO, Any

import click
from rich.console import Console

from ...messages import FailureCause, JobDetails, JobId, JobStatus
from ...messages.counted import counted
from ...messages.failures import raised, tell_line, tell_place
from ..api.environment import StreamEnvironment
from ..clusters.announcement import Announcement
from ..clusters.cluster import Cluster
from ..clusters.configuration import SAVEPOINT_DIRECTORY
from ..clusters.job_errors import JobCanceled, JobFailed
from ..clusters.job_handle import JobHandle
from ..clusters.resuming import RESUME
from ..connectors import CollectSink, PrintSink
from ..metrics.json_lines import JsonLines
from ..output.origin_formatter import OriginFormatter
from .connection import jobs_here
from .display import Display, narrate
from .hosting import Hosting, check_directory, hosting_options
from .interrupts import Interrupts
from .option_values import config_of
from .output import as_json_text, log_is_shown, note, told, with_option
from .program import Program, load_program

LOOK_SECONDS = 0.25
LOG_VARIABLE = "UNDERSTUDY_LOG"
JOB_LOG = "understudy.job"
"""Of failures, each in full when it comes first."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s%(origin)s: %(message)s"
LINE_SECONDS = 10.0
"""How often a line reports progress where no terminal shows it."""


@dataclass(frozen=True, slots=True)
class Options:
    hosting: Hosting
    config: dict[str, str]
    name: str
    submit: dict[str, Any]
    quiet: bool
    as_json: bool
    web_port: int | None
    jobs: list[JobHandle]
    """The one that was submitted."""


@click.command()
@click.argument("spec", metavar="MODULE:BUILD")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option(
    "-s",
    "--from-savepoint",
    metavar="PATH",
    help="Begin with the state of this savepoint, or of a retained checkpoint (…/chk-7).",
)
@click.option(
    "-n",
    "--allow-non-restored-state",
    is_flag=True,
    help="Leave state behind whose operator the program does not have.",
)
@click.option(
    "--resume",
    type=click.Choice(RESUME),
    help="Own the job's name, and go on from its newest checkpoint, if there is one; savepoint: from --from-savepoint.",
)
@click.option("--name", help="The job's name.  [default: the module]")
@click.option("-D", "config", metavar="KEY=VALUE", multiple=True, callback=config_of, help="A setting of the cluster.")
@click.option(
    "--web-port", type=click.IntRange(0, 65_535), help="Serve the job's page there, on loopback; 0: any port."
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing but results, and why it failed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end, with the results.")
@hosting_options
@told
def run(
    spec: str,
    arguments: tuple[str, ...],
    from_savepoint: str | None,
    allow_non_restored_state: bool,
    resume: str | None,
    name: str | None,
    config: dict[str, str],
    web_port: int | None,
    quiet: bool,
    as_json: bool,
    hosting: Hosting,
) -> None:
    """Run a program until its job ends.

    MODULE:BUILD, or path/to/file.py:BUILD, names a function that returns a StreamEnvironment, or one. ARGUMENTS after
    -- are passed to it as text, and the SparkSession of --cluster spark to its parameter `spark`.

    Standard output begins with three lines, `job ID`, `jobmanager ADDRESS` and `key-file PATH`; then come the job's
    results: what `print` prints, and at the end what `collect` has collected. Exit code 0: it has finished; 1: it
    failed, was canceled or could not start; 2: wrong usage; 130: Ctrl-C, which cancels the job. For the page of a
    job that runs already: `understudy dashboard` in another terminal.
    """
    if allow_non_restored_state and from_savepoint is None and resume is None:
        raise click.UsageError("--allow-non-restored-state needs --from-savepoint or --resume")
    jobs = list[JobHandle]()
    with Interrupts() as interrupts, _results_only(as_json) as results:
        _log_as_asked()
        try:
            program = load_program(spec)
            submit = {
                "from_savepoint": from_savepoint,
                "allow_non_restored_state": allow_non_restored_state,
                "resume": resume,
            }
            options = Options(hosting, config, name or program.name, submit, quiet, as_json, web_port, jobs)
            code = _run(program, arguments, options, results, interrupts)
        except BaseException as error:
            if interrupts.signal is None and not isinstance(error, KeyboardInterrupt):
                raise
            has_finished = any(job.status is JobStatus.FINISHED for job in jobs)
            what = "the job had finished already" if has_finished else "the job is cancelled"
            note(f"interrupted: {what}, everything is stopped and removed")
            code = interrupts.exit_code
    raise SystemExit(code)


def _log_as_asked() -> None:
    """With UNDERSTUDY_LOG=LEVEL, what is logged in this process and in TaskManagers is on standard error; as JSON with
    LEVEL,json.
    """
    wanted = os.environ.get(LOG_VARIABLE)
    if wanted is None:
        return
    level, _, form = wanted.partition(",")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else OriginFormatter(LOG_FORMAT))
    try:
        if form not in ("", "json"):
            raise ValueError(form)
        logging.basicConfig(level=level.upper(), handlers=[handler])
    except ValueError as error:
        raise click.UsageError(
            f"{LOG_VARIABLE}: wanted a level such as INFO, or INFO,json, found {wanted!r}"
        ) from error


@contextlib.contextmanager
def _results_only(wanted: bool) -> Iterator[IO[str]]:
    """Standard output for results alone: what the program and its processes print goes to standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # results may be any text
    if not wanted:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w") as results:
            yield results
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _run(
    program: Program, arguments: tuple[str, ...], options: Options, results: IO[str], interrupts: Interrupts
) -> int:
    """The exit code."""
    hosting = options.hosting
    with hosting.spark(options.quiet) as spark:
        interrupts.arm()
        env = hosting.adapt(program.environment(arguments, spark))
        task_managers = hosting.task_managers_for(env)
        check_directory("checkpoint_dir", env.checkpoints.directory)
        check_directory(SAVEPOINT_DIRECTORY, options.config.get(SAVEPOINT_DIRECTORY, ""))
        try:
            cluster = hosting.make_cluster(task_managers, options.config, spark, options.web_port)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        try:
            with contextlib.ExitStack() as open_:
                _start(cluster, open_)
                return _run_job(cluster, env, options, results)
        finally:
            if interrupts.signal is not None:
                _tell_what_is_kept(cluster)


def _start(cluster: Cluster, open_: contextlib.ExitStack) -> None:
    """Raises ClickException where this machine does not let it, or another program has its port."""
    try:
        open_.enter_context(cluster)
    except OSError as error:
        if cluster.settings.web_port is None or error.strerror is None:
            raise click.ClickException(f"the cluster cannot start: {error.strerror or error}") from error
        raise click.ClickException(error.strerror) from error


def _tell_what_is_kept(cluster: Cluster) -> None:
    """After an interrupt the end of the jobs is not reported."""
    for path in filter(None, (job.retained_checkpoint_path for job in cluster.handles)):
        note(f"the job's checkpoint is kept; to go on from there: --from-savepoint {path}")


def _display(env: StreamEnvironment, quiet: bool) -> Display:
    """A live table on a terminal, unless the job prints there too."""
    prints = sys.stdout.isatty() and any(isinstance(node.operator, PrintSink) for node in env.graph.nodes)
    console = Console(stderr=True, quiet=quiet, force_terminal=False if prints or quiet else None)
    return Display(console, tells_why=not log_is_shown(JOB_LOG))


def _run_job(cluster: Cluster, env: StreamEnvironment, options: Options, results: IO[str]) -> int:
    announcement = cluster.announce()
    failure: JobFailed | JobCanceled | None = None
    with _display(env, options.quiet) as display:
        display.say(f"JobManager at {announcement.address}")
        if cluster.web_url is not None:
            display.say(f"page at {cluster.web_url}")
        stop_call = f"`understudy stop {shlex.quote(options.name)}` in another terminal"
        translation = cluster.translate(env, options.name)
        is_owner = options.submit["resume"] is not None
        others = () if is_owner else _tell_of_first(options.name, announcement, display)
        job = cluster.submit_translated(translation, **options.submit, stop_call=stop_call, jobs_elsewhere=others)
        options.jobs.append(job)
        if not (options.quiet or options.as_json):
            click.echo(
                f"job {job.job_id}\njobmanager {announcement.address}\nkey-file {announcement.key_file}", results
            )
        if options.submit["resume"] is not None:
            display.say(_begin(job))
        job.on_event(lambda event: narrate(event, display, every_checkpoint=display.is_live))
        try:
            details = _watch(job, display, {node.name for node in env.graph.nodes if not node.inputs})
        except (JobFailed, JobCanceled) as error:
            failure, details = error, error.details
    collected = {} if failure else _collected(env, job)
    if options.as_json:
        click.echo(as_json_text(_outcome(details, announcement, collected)), results)
    else:
        _print_collected(collected, results)
    if failure is not None:
        known = failure.brief if isinstance(failure, JobFailed) and log_is_shown(JOB_LOG) else str(failure)
        raise click.ClickException(with_option(known, details)) from failure
    return 0


def _tell_of_first(name: str, own: Announcement, display: Display) -> tuple[JobId, ...]:
    """Announce those of this name that run here already; returns all jobs that run here in other processes."""
    others = [(where, job) for where, job in jobs_here(but=own) if not job.status.is_terminal]
    for where, job in others:
        if job.name == name:
            display.say(
                f"job {name!r} runs now: {job.job_id} in process {where.pid}; `understudy list` shows it, and "
                f"`understudy stop {job.job_id}` ends it with a savepoint. This run is a second job beside it"
            )
    return tuple(job.job_id for _, job in others)


def _begin(job: JobHandle) -> str:
    """What was resumed."""
    if (found := job.restored_from) is None:
        return f"there is no checkpoint of job {job.name!r}: it starts from the beginning"
    return f"it goes on from checkpoint {found.checkpoint_id} of {found.job_id}: {found.path}"


def _watch(job: JobHandle, display: Display, sources: Collection[str]) -> JobDetails:
    """Show how far it is until it ends. `sources`: their names. Raises JobFailed, JobCanceled, JobLost."""
    told, lines = time.monotonic(), ProgressLines(sources)
    while True:
        with contextlib.suppress(TimeoutError):
            return job.wait(timeout=LOOK_SECONDS)
        details = job.details()
        display.tasks(details.tasks)
        if not display.is_live and time.monotonic() - told >= LINE_SECONDS:
            told = time.monotonic()
            display.say(lines.line(details))


class ProgressLines:
    """How far a job is, a line now and then. The text of a failure comes in full once, and then its type and place:
    what the log has said (FailureLog) is in another process, or not to be seen.
    """

    def __init__(self, sources: Collection[str]) -> None:
        self._sources = sources
        self._known = ""

    def line(self, details: JobDetails) -> str:
        read = sum(task.records_in for task in details.tasks if task.vertex_name.split(" -> ")[0] in self._sources)
        is_down = details.failures and details.status is not JobStatus.RUNNING
        why = f"; last failure: {self._told(details.failures[-1])}" if is_down else ""
        return (
            f"job is {details.status.value}: its sources have read {counted(read, 'record')}, "
            f"{counted(details.completed_checkpoints, 'checkpoint')}, {counted(details.restarts, 'restart')}{why}"
        )

    def _told(self, failure: FailureCause) -> str:
        error = raised(failure)
        text, is_known = tell_line(failure), error.error_message == self._known
        self._known = error.error_message
        where = tell_place(failure)
        short = f"{error.error_type} again{f', in {where}' if where else ''}"
        return short if is_known and len(short) < len(text) else text


def _collected(env: StreamEnvironment, job: JobHandle) -> dict[str, list[Any]]:
    names = [node.name for node in env.graph.nodes if isinstance(node.operator, CollectSink)]
    return {name: job.results(name) for name in names}


def _print_collected(collected: dict[str, list[Any]], results: IO[str]) -> None:
    """A line per record, with the sink's name before it when there are several."""
    for name, records in collected.items():
        prefix = f"{name}> " if len(collected) > 1 else ""
        results.write("".join(f"{prefix}{record}\n" for record in records))
    results.flush()


def _outcome(details: JobDetails, announcement: Announcement, collected: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        "job_id": details.job_id,
        "name": details.name,
        "status": details.status,
        "restarts": details.restarts,
        "completed_checkpoints": details.completed_checkpoints,
        "latest_checkpoint_path": details.latest_checkpoint_path,
        "failures": details.failures,
        "jobmanager": announcement.address,
        "results": collected,
    }
