"""Which operator a stack is in, and which line of it is the user's."""

from __future__ import annotations

import json
import sys
import threading
from types import FrameType, SimpleNamespace
from typing import Any

from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.runtime.output.running_code import RunningCode, running_operator


class Seen:
    """Takes the stack of whoever calls, without being on it."""

    frame: FrameType | None = None

    def look(self, *_: Any) -> None:
        self.frame = sys._getframe(1)


seen = Seen()


def helper() -> None:
    seen.look()  # the user's line


class Calling(Operator):
    def process_batch(self, batch: Any, out: Any) -> None:
        helper()


class Loading(Operator):
    def on_checkpoint(self, checkpoint_id: Any) -> None:
        json.loads("{}", object_hook=seen.look)  # whose innermost frames are the standard library's


def placed(operator: Operator) -> Operator:
    operator.context = SimpleNamespace(name="mine")  # type: ignore[assignment]
    return operator


def test_the_line_is_the_innermost_of_the_users_and_the_method_the_operators() -> None:
    operator = placed(Calling())
    OperatorChain([operator], lambda _: None).process([1])
    code = RunningCode.of(seen.frame)
    assert code.operator is operator
    assert (code.method, code.path, code.source) == ("process_batch", __file__, "seen.look()  # the user's line")
    assert str(code).startswith(f"{__file__}:{code.line}: seen.look()")
    assert running_operator(seen.frame) is operator


def test_lines_of_libraries_are_passed_over() -> None:
    operator = placed(Loading())
    OperatorChain([operator], lambda _: None).checkpoint(1)  # type: ignore[arg-type]
    code = RunningCode.of(seen.frame)
    assert seen.frame is not None
    assert "json" in seen.frame.f_code.co_filename
    assert (code.operator, code.method) == (operator, "on_checkpoint")
    assert code.source.startswith("json.loads(")


def test_with_no_operator_on_the_stack_it_names_none() -> None:
    helper()
    assert RunningCode.of(seen.frame).operator is None
    assert RunningCode.of(seen.frame).method == "helper"
    assert RunningCode.of(None) == RunningCode(None)
    assert str(RunningCode.of(None)) == "no line of Python"


def test_where_no_line_is_the_users_it_is_the_innermost_of_all() -> None:
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        code = RunningCode.of(sys._current_frames()[thread.ident or 0])
    finally:
        waiting.set()
        thread.join()
    assert code.operator is None
    assert code.path == threading.__file__
    assert str(code).startswith(f"{threading.__file__}:{code.line}: ")
    assert running_operator(None) is None
