"""FailureReport: the text about a history in which a user's job was wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....messages.counted import counted
from ..histories.story import tell
from .diagnosis import Diagnosis, difference, is_order
from .tried import Tried

_LONGEST_STORY = 60
_BY_NAME = ("expected", "outside")
"""Options whose values may be long, or functions: a report has a variable in their place."""


@dataclass(frozen=True, slots=True)
class Call:
    """The call of an assertion, so that it can be written down again. `options`: those that are not as usual."""

    function: str
    job: str
    options: Mapping[str, Any]

    def text(self, **more: Any) -> str:
        given = {
            **self.options,
            **{name: _Named(name) for name in _BY_NAME if self.options.get(name) is not None},
            **more,
        }
        arguments = [self.job, *(f"{name}={value!r}" for name, value in given.items())]
        return f"{self.function}({', '.join(arguments)})"


class _Named(str):
    __slots__ = ()
    __repr__ = str.__str__


def failure_report(
    call: Call,
    diagnosis: Diagnosis,
    shrunk: Tried,
    runs: int,
    kept: Sequence[str] = (),
    causes: Sequence[str] = (),
    unordered: Sequence[str] = (),
) -> str:
    """Of a history that fails whenever it is run. `runs`: how many more it took to shrink it. `kept`: what was not
    rescaled, and why. `causes`: likely ones. `unordered`: operators whose coroutines' results leave as they come.
    """
    failed = diagnosis.failed
    parts = [
        str(shrunk.violations[0]),
        *(f"also {violation}" for violation in shrunk.violations[1:3]),
        "",
        f"Found in the history of seed {failed.seed}. To run it again:",
        *_indented(_reproducers(call, failed.seed)),
        "",
        *_cause(diagnosis, shrunk, causes, unordered),
        "",
        *_shrunk(call, failed, shrunk, runs),
        *_rescaled(shrunk, kept),
        "",
        f"What happens then, in virtual time (the job ends {_status(shrunk)}):",
        *_story(shrunk),
    ]
    return "\n".join(parts)


def unrepeatable_report(call: Call, diagnosis: Diagnosis, causes: Sequence[str] = (), without_faults: str = "") -> str:
    """Of a history that is another one when its seed is run again. `causes`: likely ones. `without_faults`: how two
    runs without faults differ, if they do.
    """
    failed = diagnosis.failed
    told = f"the same seed gave two different outputs: {difference(failed, diagnosis.again)}"
    if without_faults:
        told = f"two runs without faults gave two different outputs: {without_faults}"
    parts = [
        f"unrepeatable: {told}",
        "",
        *WHAT_CHANGES,
        *likely(causes),
        "",
        f"Found in the history of seed {failed.seed}, which was run twice, unchanged. To do it again:",
        *_indented(_reproducers(call, failed.seed)),
        "",
        f"The first time it showed: {failed.violations[0]}",
    ]
    return "\n".join(parts)


def other_process_report(call: Call, problem: str, causes: Sequence[str] = ()) -> str:
    """Of a job that commits something else in another process. `problem`: begins with what it depends on. `causes`:
    likely ones.
    """
    advice = {"hash-seed": HASHES, "time-zone": TIME_ZONES}.get(problem.partition(":")[0], WHAT_CHANGES)
    return "\n".join(
        [
            problem,
            "",
            *advice,
            *likely(causes),
            "",
            "No fault is needed for it. Each run looks for it:",
            f"    {call.text()}",
        ]
    )


HASHES = (
    "hash() of a text, of bytes or of a tuple with them, and the order in which a set of texts is gone through, differ",
    "from process to process, and after a restart. Use zlib.crc32(text.encode()) instead of hash(text), and",
    "sorted(names) where a set is gone through.",
)

TIME_ZONES = (
    "datetime.fromtimestamp(seconds), datetime.now() and time.localtime() give the time of the zone that the machine",
    "is set to, and naive datetimes have no zone: another TaskManager may be elsewhere, or in UTC. Say which it is,",
    "as in datetime.fromtimestamp(seconds, ZoneInfo('Europe/Berlin')).",
)

WHAT_CHANGES = (
    "Something in your job reads real time, random numbers or ids (time.time, datetime.now, random, uuid, id,",
    "os.urandom), or remembers earlier runs in a global variable. Then no run can be compared with another, and what",
    "is replayed after a restore differs from what was there before. Use self.context.clock for the time; make random",
    "numbers and ids from the record (random.Random(record_id), uuid.uuid5); keep what is to be remembered in state.",
)


def _reproducers(call: Call, seed: int) -> list[str]:
    test, _, _ = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
    command = [f"pytest '{test}' --simulate-seed {seed}"] if test else []
    return [*command, call.text(first_seed=seed, histories=1)]


def likely(causes: Sequence[str]) -> list[str]:
    """A line each."""
    return [f"Likely cause: {cause}." for cause in causes]


def _cause(diagnosis: Diagnosis, shrunk: Tried, causes: Sequence[str], unordered: Sequence[str]) -> list[str]:
    """What the runs say about it, in one paragraph."""
    told = ["The same seed was run again, with the same outcome."]
    if shrunk.ahead:
        told.append(f"In this history source {shrunk.ahead!r} runs ahead of the others: its records come first.")
    if is_order(shrunk) and not causes:
        return [
            *told[1:],
            "0 recoveries: order. Nothing was restored, and no checkpoint failed: what this job commits depends on the",
            "order in which records of several inputs or subtasks arrive, or on when they do (self.context.clock). No",
            "failure is needed for it. Make the result the same in every order (go by a time in the record, use an",
            "operation that commutes), or compare only the sinks that have such a result (sink=...).",
            *_unordered(unordered),
        ]
    if diagnosis.needs_faults and not (shrunk.faults or shrunk.actions):
        told.append(
            "It goes wrong without faults and savepoints too, when things take other times: none of them matters."
        )
    elif diagnosis.needs_faults:
        told.append("Without faults and savepoints it commits what was wanted, so they matter.")
    else:
        told.append("Without faults and savepoints it goes wrong too, so none of them matters.")
    return [*told, *likely(causes)]


def _unordered(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        f"Results of the coroutines of {', '.join(map(repr, names))} leave as they come, in another order than their",
        "records came in. If what follows depends on that order, write .async_settings(ordered=True) behind it.",
    ]


def _shrunk(call: Call, failed: Tried, shrunk: Tried, runs: int) -> list[str]:
    count = (
        f"Shrunk from {counted(len(failed.faults), 'fault')} to {len(shrunk.faults)}, in {counted(runs, 'more run')}:"
    )
    if not shrunk.faults and not shrunk.actions:
        if shrunk.seed == failed.seed:
            return ["No fault is needed for it."]
        return ["No fault is needed for it:", f"    {call.text(first_seed=shrunk.seed, histories=1, faults=())}"]
    parts = {"faults": shrunk.faults, "actions": shrunk.actions}
    given = {name: each for name, each in parts.items() if each or name == "faults"}
    names = ", ".join(sorted({type(each).__name__ for all_of in given.values() for each in all_of}))
    lines = [f"from understudy.testing import {names}", ""]
    for name, all_of in given.items():
        lines += [f"{name} = (", *(f"    {each!r}," for each in all_of), ")"] if all_of else [f"{name} = ()"]
    return [count, *_indented([*lines, _with(call, shrunk.seed, tuple(given))])]


def _rescaled(shrunk: Tried, kept: Sequence[str]) -> list[str]:
    """What became of the job's rescaling, and what it left as it was."""
    if not shrunk.actions:
        return []
    lines = [
        "",
        "The job was ended with a savepoint, and went on from there. Its output is that of all its jobs together.",
    ]
    left = [*shrunk.kept, *kept]
    return [*lines, "Not rescaled:", *_indented(list(left))] if left else lines


def _with(call: Call, seed: int, names: tuple[str, ...]) -> str:
    more = "".join(f", {name}={name}" for name in names)
    return call.text(first_seed=seed, histories=1).removesuffix(")") + f"{more})"


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


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]
