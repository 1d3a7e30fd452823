"""docs/state.md is true: its example runs, and its errors are those that are raised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "state.md").read_text()
EXAMPLE, EXPIRING, INCREMENTAL = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
EXPIRED, WRONG_TYPE, NO_KEY = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.processes
def test_the_example_emits_one_row_per_key(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[(origin, 25, 19.0) for origin in ('EWR', 'JFK', 'LGA')]}\n"


@pytest.mark.processes
def test_the_example_of_incremental_checkpoints_counts_all_accounts(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(INCREMENTAL)
    done = prepared.run("example.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr


def test_the_example_of_state_that_expires_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(EXPIRING, {})
    assert capsys.readouterr().out == f"{EXPIRED}\n"


def run(operator: Any) -> None:
    with OperatorHarness(operator, key_by="origin") as harness:
        harness.process([{"origin": "JFK", "delay": 1.0}])
        harness.end()


def test_the_errors_are_those_on_the_page() -> None:
    found: dict[str, Any] = {}
    exec(EXAMPLE.partition("flights = [{")[0], found)
    delays: Any = found["Delays"]

    class Wrong(delays):  # type: ignore[misc]
        def process(self, flight: Any, out: Any) -> None:
            self.flights.update("text")

    class Keyless(delays):  # type: ignore[misc]
        def on_end(self, out: Any) -> None:
            self.flights.value()

    for operator, text in ((Wrong, WRONG_TYPE), (Keyless, NO_KEY)):
        with pytest.raises(UserCodeError) as caught:
            run(operator)
        assert str(caught.value.__cause__).replace(repr(caught.value.operator_name), "'delays'") == text
