"""`understudy state`: what is shown, as text and as JSON, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.runtime.savepoints.made import KEYS, declared_states, lists, savepoint
from understudy.runtime.cli import main


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return savepoint(tmp_path_factory.mktemp("state"))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["state", *map(str, arguments)])


def printed(*arguments: object) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.every_run
def test_ls_lists_operators_and_states(path: Path) -> None:
    result = run("ls", path, "--rows")
    text = result.stdout
    assert "rows: as `understudy state cat` prints them, one for each key" in result.stderr
    (line,) = (line for line in text.splitlines() if " table " in line)
    assert line.split() == ["declared", "2", "16", "table", "MapState", "dict[str,", "int]", str(len(KEYS))]
    told = json.loads(printed("ls", path, "--json"))
    assert told["checkpoint_id"] == 3
    assert {each["state"] for each in told["states"]} >= {"value", "noted", "columnar aggregation", "event-time timers"}


def test_cat_prints_rows_of_all_keys_or_of_one(path: Path) -> None:
    assert printed("cat", path, "declared", "value", "--key", "JFK", "--json") == '{"key": "JFK", "value": 300}\n'
    assert printed("cat", path, "declared", "value", "--key", "('JFK', 1)", "--json").endswith('"value": 320}\n')
    assert len(printed("cat", path, "declared", "value", "--json").splitlines()) == len(KEYS)
    result = run("cat", path, "declared", "value")
    assert len(result.stdout.splitlines()) == 21
    assert "the first 20 rows" in result.stderr
    assert len(printed("cat", path, "declared", "timers", "--json").splitlines()) == 2 * len(KEYS)


def test_diff_counts_and_lists_changes(path: Path, tmp_path: Path) -> None:
    other = savepoint(tmp_path, {"declared": declared_states(value=lambda at: at * 10 + (at == 30)), "lists": lists()})
    lines = printed("diff", path, other, "--operator", "declared").splitlines()
    assert [line.split() for line in lines[1:]] == [["declared", "value", "0", "0", "1", str(len(KEYS) - 1)]]
    (change,) = printed("diff", path, other, "--changes", "--operator", "declared", "--json").splitlines()
    assert json.loads(change) == {
        "operator": "declared", "state": "value", "what": "changed", "key": "JFK", "before": 300, "after": 301,
    }  # fmt: skip
    assert "no state has changed" in run("diff", path, path).stderr


def test_verify_ends_with_1_and_names_the_file(path: Path, tmp_path: Path) -> None:
    assert printed("verify", path).startswith("whole: ")
    damaged = savepoint(tmp_path, {"lists": lists()}, parallelism=1)
    (file,) = tmp_path.glob("*/chk-3/lists-*")
    file.unlink()
    result = run("verify", damaged)
    assert result.exit_code == 1
    assert result.stdout == f"{file}: missing state: no such file\n"
    told = json.loads(run("verify", damaged, "--json").stdout)
    assert told["verification"]["problems"] == [{"path": str(file), "text": "missing state: no such file"}]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
def test_export_writes_the_file_whole(path: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"legs.{ending}"
    result = run("export", path, "declared", "leg", file)
    assert result.exit_code == 0, result.output
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
    if ending == "parquet":
        assert {row["value"]["origin"] for row in pq.read_table(file).to_pylist()} == {
            f"origin {at}" for at in range(34)
        }
    elif ending != "arrow":
        assert "origin 33" in file.read_text()
    assert run("export", path, "declared", "leg", tmp_path / "legs.xls").exit_code == 2


def test_query_is_sql_over_operator_and_state(path: Path) -> None:
    sql = "SELECT max(value) AS most FROM declared.value"
    assert printed("query", path, sql, "--json") == '{"most": 330}\n'
    assert printed("query", path, sql).split() == ["most", "330"]
    hostile = "SELECT 'a' || chr(27) || '[31m' || chr(8238) || chr(10) || 'é' AS text"
    assert printed("query", path, hostile).split() == ["text", r"a\x1b[31m\u202e\né"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("ls", "/nowhere"), "missing savepoint"),
        (("ls", __file__), "not a savepoint: wanted a file that begins with"),
        (("cat", "PATH", "declare", "value"), "there is no operator 'declare'; there are: 'declared'"),
        (("cat", "PATH", "declared", "valu"), "there is no state 'valu'; there are: 'value'"),
        (("cat", "PATH", "lists", "noted", "--key", "1"), "there is no key 1"),
        (("query", "PATH", "SELECT * FROM valu"), 'tables: "declared"."value"'),
    ],
)
def test_mistakes_are_answered_in_words(path: Path, arguments: tuple[str, ...], text: str) -> None:
    result = run(*(str(path) if each == "PATH" else each for each in arguments))
    assert result.exit_code == 1
    assert text in result.stderr


def test_diff_of_an_operator_or_state_that_is_not_there_is_an_error(path: Path) -> None:
    for options in (["--operator", "nope"], ["--state", "nope"], ["--operator", "declared", "--state", "nope"]):
        result = run("diff", path, path, *options)
        assert result.exit_code == 1, options
        assert "'nope'" in result.stderr
        assert "declared" in result.stderr


def test_export_into_a_folder_that_is_not_there_says_so(path: Path, tmp_path: Path) -> None:
    result = run("export", path, "declared", "value", tmp_path / "gone" / "out.csv")
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path}/gone/out.csv cannot be written: No such file or directory\n"


def test_a_checkpoint_in_a_folder_of_another_name_is_named_as_that(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"x")
    assert "it is a folder with a _metadata, but a checkpoint's folder is called chk-N" in run("ls", tmp_path).stderr
