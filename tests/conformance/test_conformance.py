"""The kept vector files, scenario by scenario; and the runner itself, on files that lie."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main
from .runner import ADAPTERS, NotAVectorFile, Tally, read, run, scenarios_in, schema_of
from .scenario import VECTORS, Scenario, Skipped
from .state_backend import close_all

FILES = sorted(VECTORS.glob("*.json"))
"""Those distilled from Flink's tests; and `more_...`, which have further cases in the same schemas."""

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
    return [
        pytest.param(
            scenario,
            id=f"{path.stem}-{scenario.name}",
            marks=[pytest.mark.drawn] if path.stem.startswith("more_") else [],
        )
        for path in FILES
        for scenario in scenarios_in(read(path), path)
    ]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


@pytest.mark.parametrize("scenario", kept())
def test_a_scenario_of_flink_comes_out_as_it_says(scenario: Scenario) -> None:
    try:
        differences = scenario.differences()
    except Skipped as skipped:
        pytest.skip(str(skipped))
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_known_by_what_it_says_and_by_any_scenario_alone(path: Path) -> None:
    document, wanted = read(path), SCHEMAS[path.stem.removeprefix("more_")]
    in_words = {"trigger_refused"}
    alone = [{"scenarios": [each]} for each in document.get("scenarios", []) if each["name"] not in in_words]
    assert schema_of(document) == wanted
    assert {schema_of(each) for each in alone} <= {wanted}


def test_every_schema_is_played() -> None:
    assert set(SCHEMAS.values()) == set(ADAPTERS)


FIRST_SCENARIOS = [path for path in FILES if "scenarios" in read(path)]


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


ITERATIONS = read(VECTORS / "iterations.json")


def iteration(name: str) -> dict[str, Any]:
    """The file with this scenario alone, and the graph that it names."""
    sections = ("bulk", "delta", "connected_components")
    found = {section: [each for each in ITERATIONS[section] if each["name"] == name] for section in sections}
    graphs = [each["graph"] for cases in found.values() for each in cases if "graph" in each]
    found["connected_components"] += [each for each in ITERATIONS["connected_components"] if each["name"] in graphs]
    return deepcopy(found)


@pytest.mark.parametrize(
    ("name", "section", "word", "told"),
    [
        ("increment_until_4", "bulk", "expected_supersteps", 5),
        ("increment_until_4", "bulk", "expected", [5]),
        ("union_static_and_dynamic", "bulk", "expected_size", 89),
        ("subtract_one_until_negatives", "bulk", "expected_aggregates", [0, 1, 3, 5]),
        ("pagerank_dangling", "bulk", "expected_rank_sum", 1.1),
        ("workset_passed_through", "delta", "expected_supersteps", 19),
        ("duplicates_in_initial_solution", "delta", "expected_keys", [0]),
        ("components_delta_until_fewer_than_3_updates", "delta", "expected_updates_per_superstep", [6, 3, 1]),
        ("nine_vertices_max_2_supersteps", "connected_components", "expected_updates_per_superstep", [6, 2]),
        ("single_edge", "connected_components", "expected_components", 2),
    ],
)
def test_an_iteration_that_lies_is_found_out(name: str, section: str, word: str, told: Any, tmp_path: Path) -> None:
    document = iteration(name)
    document[section][0][word] = told
    (path := tmp_path / "lie.json").write_text(json.dumps(document))
    run(path, tally := Tally(), said := StringIO())
    assert tally.failed == 1
    assert said.getvalue().startswith(f"lie.json: {section}/{name}: {word}: expected {told!r}, found ")


def test_an_iteration_with_other_data_is_played(tmp_path: Path) -> None:
    document = {
        "bulk": [
            {"name": "a", "kind": "map", "input": [1, 2], "step": "x*3 - 1", "max_supersteps": 2, "expected": [5, 14]}
        ],
        "delta": [{"name": "b", "solution": "keys 3..4", "step": "delta = workset, next workset = workset"}],
    }
    document["bulk"][0] |= {"continue_while_any": "x >= 3", "expected_supersteps": 2}
    document["delta"][0] |= {"max_supersteps": 2, "expected_updates_per_superstep": [2, 2]}
    (path := tmp_path / "others.json").write_text(json.dumps(document))
    run(path, tally := Tally(), said := StringIO())
    assert (tally.passed, tally.failed) == (2, 0), said.getvalue()
