"""RunningCode: which operator a thread is in, and at which line of the user's, as its stack tells."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from ...actors.operators.committer import CommittableWriter, Committer
from ...actors.operators.idempotent_sink import IdempotentSink
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...messages.attributes import attributes_of
from ..library_code import is_library

_IMPORTLIB = "<frozen importlib._bootstrap>"

_HOOKS = frozenset(
    name
    for base in (
        Operator,
        KeyedOperator,
        Source,
        TwoPhaseCommitSink,
        LedgerSink,
        IdempotentSink,
        CommittableWriter,
        Committer,
    )
    for name in attributes_of(base)
    if not name.startswith("_")
)
"""What users define and a task calls."""


@dataclass(frozen=True, slots=True)
class RunningCode:
    """One moment of one thread."""

    operator: Operator | None
    method: str = ""
    """The operator's method that runs, of those that a task calls."""
    path: str = ""
    line: int = 0
    """The innermost line that is neither Understudy's nor a library's. When there is no such line: the method's, or
    without an operator the innermost of all. Empty when the thread runs no Python code.
    """
    imports: bool = False
    """It imports modules, as a task does when its program arrives; in no operator's method."""

    @classmethod
    def of(cls, frame: FrameType | None) -> RunningCode:
        frames = list(_outwards(frame))
        own = next((each for each in frames if not is_library(each)), None)
        operator = running_operator(frame)
        if operator is None:
            imports = any(each.f_code.co_filename == _IMPORTLIB for each in frames)
            named = own or next(iter(frames), None)
            return cls(None, own.f_code.co_name if own else "", *(_place(named) if named else ("", 0)), imports)
        methods = [each for each in frames if _operator_of(each) is operator]
        method = next((each for each in methods if each.f_code.co_name in _HOOKS), methods[0])
        return cls(operator, method.f_code.co_name, *_place(own or method))

    @property
    def source(self) -> str:
        """The text of the line, if its file is to be found."""
        return linecache.getline(self.path, self.line).strip()

    def __str__(self) -> str:
        if not self.path:
            return "no line of Python"
        source = self.source
        return f"{self.path}:{self.line}: {source}" if source else f"{self.path}:{self.line}"


def running_operator(frame: FrameType | None) -> Operator | None:
    """The innermost operator among those whose methods are on the stack."""
    return next((operator for each in _outwards(frame) if (operator := _operator_of(each)) is not None), None)


def step_frame(frame: FrameType | None) -> FrameType | None:
    """The outermost frame that is neither Understudy's nor a library's: where a step, or a coroutine's turn, began."""
    return next((each for each in reversed(list(_outwards(frame))) if not is_library(each)), None)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _operator_of(frame: FrameType) -> Operator | None:
    """Whose method it is."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    own = frame.f_locals.get(code.co_varnames[0])
    return own if isinstance(own, Operator) and hasattr(own, "context") else None


def _place(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno
