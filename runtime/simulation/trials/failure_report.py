"""FailureReport: the text about a history in which a user's job was wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..histories.story import tell
from .tried import Tried

_LONGEST_STORY = 60


@dataclass(frozen=True, slots=True)
class Call:
    """The call of an assertion, so that it can be written down again. `options`: those that are not as usual."""

    function: str
    job: str
    options: Mapping[str, Any]

    def text(self, **more: Any) -> str:
        arguments = [self.job, *(f"{name}={value!r}" for name, value in {**self.options, **more}.items())]
        return f"{self.function}({', '.join(arguments)})"


def failure_report(call: Call, failed: Tried, shrunk: Tried, runs: int) -> str:
    """`runs`: how many histories it took to shrink it."""
    parts = [
        str(shrunk.violations[0]),
        *(f"also {violation}" for violation in shrunk.violations[1:3]),
        "",
        f"Found in the history of seed {failed.seed}. To run it again:",
        *_indented(_reproducers(call, failed.seed)),
        "",
        *_shrunk(call, failed, shrunk, runs),
        "",
        f"What happens then, in virtual time (the job ends {_status(shrunk)}):",
        *_story(shrunk),
    ]
    return "\n".join(parts)


def _reproducers(call: Call, seed: int) -> list[str]:
    test, _, _ = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
    command = [f"pytest '{test}' --simulate-seed {seed}"] if test else []
    return [*command, call.text(first_seed=seed, histories=1)]


def _shrunk(call: Call, failed: Tried, shrunk: Tried, runs: int) -> list[str]:
    if not shrunk.faults:
        return [
            "No fault is needed for it: what this job commits depends on the order in which records of different",
            "channels meet, on time, or on chance, so no run of it can be compared with another.",
        ]
    names = ", ".join(sorted({type(fault).__name__ for fault in shrunk.faults}))
    return [
        f"Shrunk from {_count(len(failed.faults), 'fault')} to {len(shrunk.faults)}, in {_count(runs, 'more run')}:",
        *_indented([f"from understudy.testing import {names}", ""]),
        *_indented(["faults = ("]),
        *_indented([f"    {fault!r}," for fault in shrunk.faults]),
        *_indented([")", _with_faults(call, shrunk.seed)]),
    ]


def _with_faults(call: Call, seed: int) -> str:
    return call.text(first_seed=seed, histories=1).removesuffix(")") + ", faults=faults)"


def _story(tried: Tried) -> list[str]:
    """The beginning and the end of a long one."""
    lines = list(tell(tried.trace))
    if len(lines) > _LONGEST_STORY:
        half = _LONGEST_STORY // 2
        lines = [*lines[:half], f"{'':14}… {len(lines) - 2 * half} lines …", *lines[-half:]]
    return lines


def _status(tried: Tried) -> str:
    failure = f"; its last failure: {tried.failure}" if tried.failure else ""
    return f"{tried.status}{failure}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]
