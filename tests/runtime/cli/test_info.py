"""`understudy info`: the plan, and nothing that runs."""

from __future__ import annotations

import pytest

from .conftest import Shell


def test_the_plan_names_vertices_operators_parallelism_and_edges(shell: Shell) -> None:
    done = shell("info", "job:build", "-p", "2", "--json")
    assert done.code == 0, done.err
    plan = done.json
    assert plan["name"] == "job"
    assert (plan["tasks"], plan["slots"], plan["task_managers"]) == (4, 2, 2)
    assert plan["checkpoints"]["interval_ms"] == 200
    numbers, counting = plan["vertices"]
    assert [operator["name"] for operator in numbers["operators"]] == ["numbers"]
    assert [operator["kind"] for operator in counting["operators"]] == ["operator", "sink"]
    assert (counting["parallelism"], counting["max_parallelism"]) == (2, 128)
    (state,) = counting["operators"][0]["states"]
    assert (state["name"], state["kind"]) == ("seen", "ValueState")
    (edge,) = plan["edges"]
    assert (edge["source"], edge["target"], edge["partitioning"]) == ("numbers", "counting", "hash")
    assert not (shell.folder / "checkpoints").exists(), "something ran"
    assert shell.left_behind() == []


@pytest.mark.every_run
def test_the_plan_as_text_names_the_same(shell: Shell) -> None:
    done = shell("info", "job:build", "--name", "flights", "--", "100")
    assert done.code == 0, done.err
    assert done.out.startswith("flights: 2 tasks in 1 slot of 1 TaskManager,")
    for line in (
        "numbers  [numbers]",
        "-> counting (hash)",
        "operator counting: state seen (ValueState)",
        "sink counted",
    ):
        assert line in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["job:forgetful"], 1, "wanted a StreamEnvironment"),
        (["job:build", "-p", "500"], 1, "above the max_parallelism of 128"),
        (["job:build", "-p", "3", "--task-managers", "2"], 1, "the job needs 3 slots"),
        ([], 2, "MODULE:BUILD"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_program_that_cannot_run_is_refused_with_the_reason(
    shell: Shell, arguments: list[str], code: int, says: str
) -> None:
    done = shell("info", *arguments)
    assert done.code == code
    assert says in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_warning_about_the_program_is_a_line_without_a_place_in_our_code(shell: Shell) -> None:
    (shell.folder / "late.py").write_text(
        "from understudy import FileSink, StreamEnvironment\n"
        "def build():\n"
        "    env = StreamEnvironment()\n"
        "    env.from_collection([1]).sink_to(FileSink('out.csv'), name='out')\n"
        "    return env\n"
    )
    done = shell("info", "late.py:build")
    assert done.code == 0, done.err
    (line,) = done.err.splitlines()
    assert line.startswith("warning: sink 'out': FileSink writes a folder")
