"""The pytest plugin: how many histories tests run, and which one.

    pytest --simulate-seeds 10000     # each assert_exactly_once runs this number of histories, not 100
    pytest --simulate-minutes 2       # as many as fit into 2 minutes, each
    pytest --simulate-seed 17         # only the history of this seed: what a failure tells to run

A test that takes the argument `simulated_seed` is run once for each seed. Imported whenever pytest starts, so it
imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Generator
from math import inf
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
        default=None,
        metavar="N",
        help=f"how many histories each simulated test runs (default: {DEFAULT_HISTORIES})",
    )
    group.addoption(
        "--simulate-minutes",
        type=float,
        default=None,
        metavar="M",
        help="in place of a number: each assert_exactly_once runs as many histories as fit into M minutes",
    )
    group.addoption(
        "--simulate-seed", type=int, default=None, metavar="S", help="run only the history of this seed, as a replay"
    )


def pytest_configure(config: pytest.Config) -> None:
    histories, minutes = config.getoption("--simulate-seeds"), config.getoption("--simulate-minutes")
    if histories is not None and histories < 1:
        raise pytest.UsageError(f"--simulate-seeds: wanted at least 1, found {histories}")
    if minutes is not None and not 0 < minutes < inf:
        raise pytest.UsageError(f"--simulate-minutes: wanted a number above 0, found {minutes}")
    if minutes is not None and histories is not None:
        raise pytest.UsageError(
            "--simulate-seeds says how many histories, --simulate-minutes takes as many as fit: leave out one or the "
            "other"
        )
    BUDGET.histories = DEFAULT_HISTORIES if histories is None else histories
    BUDGET.minutes = minutes
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
        from ....messages.counted import counted

        histories, violations = counted(BUDGET.ran, "history"), counted(BUDGET.violations, "violation")
        terminalreporter.write_line(f"simulated {histories}, {violations}")
