"""HashSeeds: does a job commit the same in a process with another hash seed, in another time zone? Asked once for each
assertion.

The calm history runs in two other interpreters while this one runs the others: a small set may be in the same order by
chance in one of them. What differs there may have another reason
(the process, or what only the test's own process holds), so a difference counts only if two fresh processes of one hash
seed agree and one of another seed, or one of this time zone, does not.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import TimeoutError as AnswerTimeout
from functools import cached_property

from .committed_output import Output
from .diagnosis import output_difference
from .other_interpreter import ANSWER_S, CalmAnswer, CalmRun, OtherInterpreter, kept_interpreter

_SEEDS = (1, 2, 3, 4)
_ASKED = 2


class HashSeeds:
    """`reference`: what the job commits here; only these `sinks` are compared."""

    def __init__(self, run: CalmRun, reference: Output, sinks: Collection[str]) -> None:
        self._run = run
        self._reference = reference
        self._sinks = sinks
        own = os.environ.get("PYTHONHASHSEED", "")
        self._seeds = [seed for seed in _SEEDS if str(seed) != own]
        self._answers = {seed: kept_interpreter(seed).ask(run) for seed in self._seeds[:_ASKED]}
        self.not_compared = ""
        """Why nothing was compared, if nothing was."""

    @cached_property
    def problem(self) -> str | None:
        """What is wrong, with the advice, or None. Waits for the answers, and for more processes where they differ."""
        for seed in self._answers:
            answer = self._answer_of(seed)
            if answer.problem:
                self.not_compared = answer.problem
                return None
            if self._difference(self._reference, answer.output) is not None:
                return self._cause(seed, answer.output)
        return None

    def _answer_of(self, seed: int) -> CalmAnswer:
        try:
            return self._answers[seed].result(ANSWER_S)
        except AnswerTimeout:
            kept_interpreter(seed).close()
            return CalmAnswer({}, f"the other process gave no answer within {ANSWER_S:.0f} s")

    def _cause(self, asked: int, there: Output) -> str | None:
        again = self._in_a_fresh_process(asked)
        if again.problem:
            self.not_compared = again.problem
            return None
        if (told := self._difference(there, again.output)) is not None:
            return f"unrepeatable: two processes gave two different outputs: {told}"
        here = self._in_a_fresh_process(asked, is_elsewhere=False)
        if not here.problem and (told := self._difference(here.output, there)) is not None:
            return f"time-zone: the output depends on the time zone of the machine: {told}"
        for seed in (each for each in self._seeds if each != asked):
            other = self._in_a_fresh_process(seed)
            if not other.problem and (told := self._difference(there, other.output)) is not None:
                return f"hash-seed: the output depends on the hash seed: {told}"
        self.not_compared = "in another process the job commits something else, whatever the hash seed"
        return None

    def _in_a_fresh_process(self, seed: int, *, is_elsewhere: bool = True) -> CalmAnswer:
        interpreter = OtherInterpreter(seed, is_elsewhere=is_elsewhere)
        try:
            return interpreter.ask(self._run).result(ANSWER_S)
        except AnswerTimeout:
            return CalmAnswer({}, f"another process gave no answer within {ANSWER_S:.0f} s")
        finally:
            interpreter.close()

    def _difference(self, one: Output, other: Output) -> str | None:
        return output_difference(self._compared(one), self._compared(other))

    def _compared(self, output: Output) -> Output:
        return {name: records for name, records in output.items() if name in self._sinks}
