"""`understudy run`: what it prints and where, its exit codes, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from collections import Counter

import pytest
from click.testing import CliRunner

from understudy import JobCanceled
from understudy.messages import CheckpointId, FailureCause, JobDetails, JobId, JobStatus, SubtaskIndex
from understudy.runtime.cli import main
from understudy.runtime.cli.output import with_option
from understudy.runtime.cli.run import ProgressLines

from .conftest import WAIT_S, Shell

pytestmark = pytest.mark.every_run


def expected(count: int) -> Counter[str]:
    return Counter(str((index % 4, index // 4 + 1, index)) for index in range(count))


def test_a_finished_job_ends_with_code_0_and_its_results_are_on_standard_output(shell: Shell) -> None:
    run = shell.run("job:build", "--", "100")
    done = run.end()
    assert done.code == 0, done.err
    assert Counter(done.out.splitlines()) == expected(100)
    assert run.job_id.startswith("job-")
    assert "job is finished" in done.err
    shell.eventually_nothing_is_left()


def test_a_file_is_as_good_as_a_module_and_parallelism_brings_its_own_task_managers(shell: Shell) -> None:
    (shell.folder / "elsewhere").mkdir()
    (shell.folder / "job.py").rename(shell.folder / "elsewhere" / "job.py")
    done = shell("run", "elsewhere/job.py:build", "-q", "-p", "2", "--name", "two", "--", "100")
    assert done.code == 0, done.err
    assert Counter(done.out.splitlines()) == expected(100)
    assert done.err == ""


def test_what_a_job_prints_comes_after_three_lines_that_say_where_it_is(shell: Shell) -> None:
    done = shell("run", "job:printing")
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()] == ["job", "jobmanager", "key-file", "first", "second"]


def test_user_code_prints_and_logs_where_the_command_does(shell: Shell) -> None:
    done = shell("run", "job:talking", "-q")
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()) == ["first", "seen first"]
    assert done.err.splitlines() == ["oh first"]
    done = shell("run", "job:talking", "--json", UNDERSTUDY_LOG="info")
    assert done.json["results"] == {"out": ["first"]}
    assert {"seen first", "oh first"} <= set(done.err.splitlines())
    assert re.search(r"INFO myapp \[[\w-]+: [\w-]+, subtask 0, attempt 0\]: at first", done.err)
    done = shell("run", "job:talking", "--json", UNDERSTUDY_LOG="info,json")
    lines = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    (logged,) = (line for line in lines if line["logger"] == "myapp")
    assert (logged["message"], logged["job"], logged["operator"], logged["subtask"]) == ("at first", "job", "map-1", 0)
    for wrong in ("much", "info,xml"):
        done = shell("run", "job:talking", UNDERSTUDY_LOG=wrong)
        assert done.code == 2
        assert f"UNDERSTUDY_LOG: wanted a level such as INFO, or INFO,json, found '{wrong}'" in done.err


def test_the_page_is_served_where_it_is_wanted_and_a_port_that_is_taken_is_named(shell: Shell) -> None:
    run = shell.start("run", "job:build", "--web-port", "0")
    said = next(line for line in run.stderr if "page at " in line)
    page = said.split("page at ")[1].strip()
    with urllib.request.urlopen(f"{page}config", timeout=WAIT_S) as answer:
        assert json.load(answer)
    taken = shell("run", "job:build", "--web-port", page.rstrip("/").rpartition(":")[2])
    assert taken.code == 1
    assert "the page cannot be served at 127.0.0.1:" in taken.err
    assert taken.err.rstrip().endswith("choose another port, or 0 for any")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=WAIT_S)
    shell.eventually_nothing_is_left()


def test_with_json_standard_output_is_one_object(shell: Shell) -> None:
    done = shell("run", "job.py:build", "--json", "--", "20")
    assert done.code == 0, done.err
    assert done.json["status"] == "finished"
    assert done.json["name"] == "job"
    assert Counter(str(tuple(record)) for record in done.json["results"]["counted"]) == expected(20)
    odd = shell("run", "job:odd", "--json").json["results"]["out"]
    assert sorted(map(repr, odd)) == sorted(map(repr, ["ä", "\udcff", {"a": 1}, {"word": "w", "n": 2}]))
    printed = shell("run", "job:ready", "--json")
    assert printed.json["results"] == {}
    assert "first" in printed.err


def test_a_failed_job_ends_with_code_1_and_the_chain_of_its_causes(shell: Shell) -> None:
    done = shell("run", "job:failing")
    assert done.code == 1
    assert "ZeroDivisionError: no luck with 0" in done.err
    assert "'numbers" in done.err
    assert "in explode" in done.err, "the user's own frames"
    assert "runtime/cli" not in done.err, "none of ours"
    assert done.err.count("in explode") == done.err.count("raise ZeroDivisionError") == 1, "all of it once"
    quiet = shell("run", "job:failing", "--quiet", UNDERSTUDY_LOG="CRITICAL")
    assert quiet.err.count("in explode") == 1, "by the error, where no log shows it"
    assert json.loads(shell("run", "job:failing", "--json").out)["status"] == "failed"
    shell.eventually_nothing_is_left()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_an_interrupt_cancels_the_job_and_removes_everything(shell: Shell, number: signal.Signals, code: int) -> None:
    run = shell.run("job:build")
    done = run.interrupt(number)
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    assert "to go on with it later, end it by `understudy stop job` in another terminal; its checkpoints" in done.err
    shell.eventually_nothing_is_left()


def test_an_interrupt_after_the_jobs_end_does_not_say_that_it_was_cancelled(shell: Shell) -> None:
    """Nobody reads its results, so `run` stands in the middle of them."""
    run = shell.run("job:build", "--", "20000", "1e9")
    run.until(lambda client: client.jobs()[0].status is JobStatus.FINISHED, "the end of the job")
    done = run.interrupt()
    assert done.code == 130
    assert "interrupted: the job had finished already" in done.err
    assert "cancelled" not in done.err


def test_a_killed_run_leaves_no_process_and_no_file(shell: Shell) -> None:
    run = shell.run("job:build")
    os.kill(run.process.pid, signal.SIGKILL)
    assert run.end().code == -signal.SIGKILL
    shell.eventually_nothing_is_left()


def test_a_second_run_says_first_that_the_job_runs_and_gives_no_advice_to_resume(shell: Shell) -> None:
    running = shell.run("job:build")
    running.until_checkpoints()
    done = shell("run", "job:build", "--", "5")
    assert done.code == 0, done.err
    said = f"job 'job' runs now: {running.job_id} in process {running.process.pid}; `understudy list` shows it"
    assert said in "".join(done.err.splitlines()[:2])
    assert "starts from the beginning" not in done.err
    running.interrupt()


def test_the_same_command_goes_on_after_a_kill_and_is_refused_meanwhile(shell: Shell) -> None:
    command = "job:build", "--name", "service", "--resume", "latest", "--"
    endless, bounded = (*command, "", "1000"), (*command, "6000", "1000")
    run = shell.run(*endless)
    run.until_checkpoints()
    refused = shell("run", *endless)
    assert refused.code == 1
    assert "job 'service' runs already, as job-" in refused.err
    assert "a second job beside it" not in refused.err
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()
    done = shell("run", *bounded)
    assert done.code == 0, done.err
    assert re.search(r"it goes on from checkpoint \d+ of job-", done.err)
    again = shell("run", *bounded)
    assert again.code == 1
    assert "has finished" in again.err
    shell.eventually_nothing_is_left()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nosuch:build"], 1, "no module 'nosuch'"),
        (["nosuch.py:build"], 1, "no file nosuch.py"),
        (["/etc/passwd:x"], 1, "/etc/passwd is no Python file: wanted path/to/file.py:build"),
        (["job"], 2, "wanted module:build or path/to/file.py:build, found 'job'"),
        (["job:nosuch"], 1, "has no 'nosuch'; it has build, sluggish, failing"),
        (["job:forgetful"], 1, "returned nothing; wanted a StreamEnvironment: is `return env` missing?"),
        (["job:__name__"], 1, "job:__name__ is a str ('job'); wanted a function that returns a StreamEnvironment"),
        (["job:build", "--", "1", "2", "never", "4"], 1, "is called as build(count='', rate='500'"),
        (["job:handed"], 1, "missing a required argument: 'env'; it makes its environment itself"),
        (["job:with_spark"], 1, "run it with --cluster spark"),
        (["job:build", "--parallelism", "0"], 2, "--parallelism"),
        (["job:build", "--master", "local[2]"], 2, "--cluster spark"),
        (["job:build", "-D", "novalue"], 2, "wanted key=value, found 'novalue'"),
        (["job:build", "-D", "no.such=key"], 2, "unknown configuration key 'no.such'"),
        (["job:build", "-D", "savepoints.state.backend.fs.dir=nosuch://x"], 1, "'nosuch://x' cannot be opened"),
        (["job:build", "--from-savepoint", "checkpoints/savepoints/nosuch"], 1, "checkpoints/savepoints/nosuch"),
        (["job:build", "--from-savepoint", "/etc/passwd"], 1, "/etc/passwd"),
        (["job:build", "--allow-non-restored-state"], 2, "needs --from-savepoint"),
        (["job:build", "-p", "4", "--task-managers", "1"], 1, "the job needs 4 slots"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_run_is_told_in_words(shell: Shell, arguments: list[str], code: int, told: str) -> None:
    done = shell("run", *arguments)
    assert told in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert done.out == ""
    assert done.code == code
    assert shell.left_behind() == []


def test_a_machine_on_which_no_cluster_can_start_is_told_in_words(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)
    monkeypatch.setattr("understudy.runtime.clusters.local_cluster.descriptors_of_process", lambda: 24)
    done = CliRunner().invoke(main, ["run", "job.py:build"])
    assert done.exit_code == 1
    assert "Error: the cluster cannot start: this process may open 24 files" in done.output


def test_what_the_program_raises_is_shown_with_the_programs_own_frames_only(shell: Shell) -> None:
    done = shell("run", "job:raising")
    assert done.code == 1
    assert "job:raising raised LookupError" in done.err
    assert 'job.py", line' in done.err
    assert "LookupError: no such table" in done.err
    assert "runtime/cli" not in done.err
    assert "importlib" not in done.err


def test_an_error_of_ours_has_the_programs_frames_and_a_line_for_each_cause(shell: Shell) -> None:
    done = shell("run", "job:unreadable")
    assert done.code == 1
    assert "job:unreadable raised UnknownFileSystem" in done.err
    assert "in unreadable" in done.err
    assert re.search("\nUnknownFileSystem: .*nosuch://x: fsspec knows no protocol 'nosuch'", done.err)
    assert "\ncaused by ValueError: Protocol not known: nosuch" in done.err
    for part in ("direct cause", "During handling", "site-packages", "connectors"):
        assert part not in done.err


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import nosuchthing\n", "ModuleNotFoundError: No module named 'nosuchthing'"),
        ("def build(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
    ids=["import", "syntax", "error"],
)
@pytest.mark.parametrize("spec", ["broken:build", "broken.py:build"])
def test_a_program_that_cannot_be_imported_is_shown_where_it_fails(
    shell: Shell, source: str, told: str, spec: str
) -> None:
    (shell.folder / "broken.py").write_text(source)
    done = shell("run", spec)
    assert done.code == 1
    assert told in done.err
    assert "broken.py" in done.err
    assert "runtime/cli" not in done.err
    assert "importlib" not in done.err


def test_a_file_whose_name_another_module_has_is_refused(shell: Shell) -> None:
    (shell.folder / "elsewhere").mkdir()
    (shell.folder / "elsewhere" / "json.py").write_text("def build(): ...\n")
    done = shell("run", "elsewhere/json.py:build")
    assert done.code == 1
    assert "another module is called 'json'" in done.err


@pytest.mark.drawn
@pytest.mark.spark
def test_a_program_that_takes_a_spark_session_runs_on_spark(shell: Shell) -> None:
    done = shell("run", "job:with_spark", "--cluster", "spark", "--task-managers", "2", "-q")
    assert done.code == 0, done.err
    assert sorted(map(int, done.out.splitlines())) == list(range(100))
    shell.eventually_nothing_is_left()


@pytest.mark.drawn
@pytest.mark.spark
def test_an_interrupt_cancels_a_job_on_spark_too(shell: Shell) -> None:
    done = shell.run("job:endless_on_spark", "--cluster", "spark").interrupt()
    assert done.code == 130, done.err
    assert "starting Spark at local[2]" in done.err
    assert "Traceback" not in done.err
    shell.eventually_nothing_is_left()


def test_how_a_job_has_ended_names_the_option_of_the_command_line() -> None:
    checkpoint, path = CheckpointId(1), "/c/1/_metadata"
    details = JobDetails(JobId("job-1"), "shop", JobStatus.CANCELED, 0, (), 1, checkpoint, "", (), path)
    assert with_option(str(JobCanceled(details)), details).endswith(f"to go on from there: --from-savepoint {path}")


def test_the_text_of_a_failure_is_in_one_line_of_progress_and_not_in_each() -> None:
    """A long text came every ten seconds, as long as the job restarted."""
    lines = ProgressLines(())

    def line(text: str, attempt: int, status: JobStatus = JobStatus.RESTARTING) -> str:
        failure = FailureCause(
            "ValueError", text, operator_name="parse", subtask_index=SubtaskIndex(0), attempt_number=attempt
        )
        return lines.line(JobDetails(JobId("job-1"), "shop", status, attempt, (failure,), 1, CheckpointId(1), "", ()))

    long = "no price in " + "x" * 300
    assert long in line(long, 0)
    again = line(long, 1)
    assert long not in again
    assert "ValueError again, in operator 'parse', subtask 0, attempt 1" in again
    assert "failure" not in line(long, 2, JobStatus.RUNNING)
    assert "another" in line("another", 3)
    assert long in line(long, 4)
