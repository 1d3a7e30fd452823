"""The pytest plugin: how many histories tests run, and which one.

    pytest --simulate-seeds 10000     # each assert_exactly_once runs this number of histories, not 100
    pytest --simulate-seed 17         # only the history of this seed: what a failure tells to run

A test that takes the argument `simulated_seed` is run once for each seed. Imported whenever pytest starts, so it
imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from .budget import BUDGET, DEFAULT_HISTORIES

_FIXTURE = "simulated_seed"
_COUNTS = "understudy_histories"
"""Under this name a worker of pytest-xdist tells the main process its figures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("understudy", "Understudy's simulator")
    group.addoption(
        "--simulate-seeds",
        type=int,
        default=DEFAULT_HISTORIES,
        metavar="N",
        help=f"how many histories each simulated test runs (default: {DEFAULT_HISTORIES})",
    )
    group.addoption(
        "--simulate-seed", type=int, default=None, metavar="S", help="run only the history of this seed, as a replay"
    )


def pytest_configure(config: pytest.Config) -> None:
    histories = config.getoption("--simulate-seeds")
    if histories < 1:
        raise pytest.UsageError(f"--simulate-seeds: wanted at least 1, found {histories}")
    BUDGET.histories = histories
    BUDGET.only_seed = config.getoption("--simulate-seed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if _FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(_FIXTURE, BUDGET.seeds(), ids=lambda seed: f"seed {seed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that takes `simulated_seed` is a history itself."""
    report = yield
    seed = getattr(item, "callspec", None) and item.callspec.params.get(_FIXTURE)  # type: ignore[attr-defined]
    if seed is not None and report.when == "call":
        BUDGET.ran += 1
        if report.failed:
            BUDGET.violations += 1
            report.sections.append(("simulated history", f"to run it again: --simulate-seed {seed}"))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_COUNTS] = (BUDGET.ran, BUDGET.violations)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended."""
    ran, violations = getattr(node, "workeroutput", {}).get(_COUNTS, (0, 0))
    BUDGET.ran += ran
    BUDGET.violations += violations


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if BUDGET.ran:
        histories = "1 history" if BUDGET.ran == 1 else f"{BUDGET.ran} histories"
        violations = "1 violation" if BUDGET.violations == 1 else f"{BUDGET.violations} violations"
        terminalreporter.write_line(f"simulated {histories}, {violations}")
