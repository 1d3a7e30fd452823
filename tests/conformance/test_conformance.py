"""The kept vector files, scenario by scenario; and the runner itself, on files that lie."""

from __future__ import annotations

import json
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main
from .runner import ADAPTERS, NOT_YET, NotAVectorFile, Tally, read, run, scenarios_in, schema_of
from .scenario import VECTORS, Scenario, Skipped

FILES = sorted(VECTORS.glob("*.json"))

SCHEMAS = {
    "backpressure": "back-pressure",
    "barrier_buffer": "barrier buffer",
    "barrier_tracker": "barrier tracker",
    "checkpoint_coordinator": "checkpoint coordinator",
    "iterations": "iterations",
    "key_groups": "key groups",
    "restart_strategies": "restart strategies",
    "scheduling": "scheduling",
    "state_backend": "state backend",
    "two_phase_commit": "two-phase commit",
    "windows": "windows",
}


def kept() -> list[Any]:
    found = [(path.stem, scenario) for path in FILES for scenario in scenarios_in(read(path), path)]
    return [pytest.param(scenario, id=f"{stem}-{scenario.name}") for stem, scenario in found]


@pytest.mark.parametrize("scenario", kept())
def test_a_scenario_of_flink_comes_out_as_it_says(scenario: Scenario) -> None:
    try:
        differences = scenario.differences()
    except Skipped as skipped:
        pytest.skip(str(skipped))
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_known_by_what_it_says_and_by_any_scenario_alone(path: Path) -> None:
    document, wanted = read(path), SCHEMAS[path.stem]
    in_words = {"trigger_refused"}
    alone = [{"scenarios": [each]} for each in document.get("scenarios", []) if each["name"] not in in_words]
    assert schema_of(document) == wanted
    assert {schema_of(each) for each in alone} <= {wanted}


def test_every_schema_is_played_or_named() -> None:
    assert set(SCHEMAS.values()) == {*ADAPTERS, *NOT_YET}


FIRST_SCENARIOS = [path for path in FILES if "scenarios" in read(path) and path.stem not in NOT_YET]


@pytest.mark.parametrize("path", FIRST_SCENARIOS, ids=lambda path: path.stem)
def test_a_file_that_lies_is_found_out(path: Path, tmp_path: Path) -> None:
    """The first few scenarios, with each number that they expect one too high in turn."""
    document = read(path)
    lies: list[Any] = []
    for honest in document["scenarios"][:3]:
        for index in range(len(expected_numbers(honest))):
            lies.append(deepcopy(honest))
            container, key = expected_numbers(lies[-1])[index]
            container[key] += 1
    (copy := tmp_path / "lies.json").write_text(json.dumps({"scenarios": lies}))
    run(copy, tally := Tally(), told := StringIO(), most=1)
    assert (tally.passed, tally.failed) == (0, len(lies)), told.getvalue()
    assert lies
    assert all("expected" in line and "found" in line for line in told.getvalue().splitlines())


EXPECTATIONS = frozenset(
    {"expected_output", "expected_checkpoints_triggered", "expected_aborted", "pending_at_end"}
    | {"expect", "returns", "delay_ms", "check", "response", "fires", "late"}
)


def expected_numbers(value: Any, expected: bool = False) -> list[tuple[Any, Any]]:
    """(container, key) of every number inside what a scenario expects."""
    places: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        is_expected = expected or key in EXPECTATIONS
        if is_expected and type(inner) in (int, float):
            places.append((value, key))
        else:
            places += expected_numbers(inner, is_expected)
    return places


def test_what_is_no_vector_file_is_refused_with_what_was_found_and_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in [("a", "{"), ("b", "[1]"), ("c", '{"x": [{"y": 1}]}')]:
        (path := tmp_path / name).write_text(text)
        assert main([str(path)]) == 2
        assert "wanted" in capsys.readouterr().err
    assert main([str(tmp_path / "missing")]) == 2
    assert main([]) == 2
    with pytest.raises(NotAVectorFile, match="No such file"):
        read(tmp_path / "missing")


def test_an_unknown_word_fails_its_scenario_and_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = read(VECTORS / "barrier_tracker.json")
    document["scenarios"] = document["scenarios"][:2]
    document["scenarios"][0]["input"].insert(0, [0, {"frobnicate": 1}])
    (path := tmp_path / "a.json").write_text(json.dumps(document))
    assert main([str(path)]) == 1
    told = capsys.readouterr().out
    assert "UnknownWord: found the element {'frobnicate': 1}; wanted data, barrier, cancel or end" in told
    assert told.endswith("1 passed, 1 failed\n")


def test_schemas_that_nothing_plays_yet_are_named_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VECTORS / "iterations.json")]) == 0
    assert capsys.readouterr().out == "not yet: iterations\n0 passed, 0 failed\n"
