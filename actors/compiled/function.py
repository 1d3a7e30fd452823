"""A user's function, made ready for Numba: its operators are replaced by exact ones, and what it names is looked at.

The functions and methods that it calls are compiled in the same way.
"""

from __future__ import annotations

import math
from types import FunctionType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

import numba
from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.typed_passes import NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes

from ..operators.keyed_operator import KeyedOperator
from .arithmetic import FUNCTIONS, OPERATORS
from .layout import kind_of
from .out_access import COLLECT, settle
from .refusal import refused
from .types import OutType
from .unwrapping import there, unpacked

_AS_NUMBA_HAS_IT = frozenset({bool, float, str, len, range, enumerate, zip, min, max, math.fabs, math.copysign})
_AS_NUMBA_HAS_IT |= {math.isnan, math.isinf, math.isfinite, math.degrees, math.radians}
NONE: Final = object()
_OURS = "a compiled function can call methods of your own; the times that it has are self.timestamp and self.watermark"
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def compiled(function: Any, owner: type | None = None) -> Any:
    """Numba's dispatcher of this function. `owner`: the operator's class, if it is a method.

    Nothing is compiled before it is called.
    """
    key = function.__code__
    made = _made.setdefault(function, {})
    if owner not in made:
        copy = FunctionType(key, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        copy.understudy_owner = owner  # type: ignore[attr-defined]
        made[owner] = numba.njit(pipeline_class=_Compiler, error_model="python", boundscheck=True, forceinline=True)(
            copy
        )
    return made[owner]


def counterpart(value: Any) -> Any:
    """What takes the place of a Python object that a function names; NONE for what a compiled function cannot use."""
    if _is_constant(value) or isinstance(value, Dispatcher) or _is_numbas(value):
        return value
    if isinstance(value, FunctionType):
        return compiled(value)
    if isinstance(value, type) and (issubclass(value, BaseException) or _is_named_tuple(value)):
        return value
    if not _is_hashable(value):
        return NONE
    return value if value in _AS_NUMBA_HAS_IT else FUNCTIONS.get(value, OPERATORS.get(value, NONE))


@register_pass(mutates_CFG=False, analysis_only=False)
class _MakeExact(FunctionPass):
    _name = "understudy_make_exact"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        _Rewriting(state.func_ir, state.func_id.func).run()
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class _SettleOutput(FunctionPass):
    _name = "understudy_settle_output"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for call in block.find_exprs("call"):
                kind = state.typemap[call.func.name]
                if isinstance(kind, types.BoundFunction) and kind.typing_key == COLLECT:
                    assert isinstance(kind.this, OutType)
                    try:
                        settle(kind.this.layout, state.calltypes[call].args)
                    except TypingError as error:
                        raise refused(state.func_id.func, call.loc.line, str(error)) from None
        return False


class _Compiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        flags = self.state.flags
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True  # only the kernel is called from Python
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_MakeExact, InlineClosureLikes)
        passes.add_pass_after(_SettleOutput, NopythonTypeInference)
        passes.finalize()
        return [passes]


class _Rewriting:
    """One function's intermediate code, changed in place."""

    def __init__(self, code: Any, function: Any) -> None:
        self._code, self._function = code, function
        self._values: dict[str, Any] = {}
        """Variables that hold something known before the function runs: modules, and what is taken from them."""
        self._methods: dict[str, Any] = {}
        """Variables that hold a method of `self`, with the variable that holds `self`."""
        self._own: set[str] = set()
        """Variables that hold `self`."""

    def run(self) -> None:
        for label in sorted(self._code.blocks):
            block = self._code.blocks[label]
            body: list[Any] = []
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    self._assignment(block.scope, statement, body)
                elif isinstance(statement, ir.SetAttr):
                    self._refuse(statement.loc, f"{statement.attr} is set: what a function remembers must be state")
                body.append(statement)
            block.body = body

    def _assignment(self, scope: Any, statement: Any, body: list[Any]) -> None:
        value, target = statement.value, statement.target.name
        if isinstance(value, ir.Arg) and value.index == 0 and self._function.understudy_owner is not None:
            self._own.add(target)
        elif isinstance(value, ir.Var):
            self._alias(value.name, target)
        elif isinstance(value, ir.Global | ir.FreeVar):
            self._known(statement, value.name, value.value)
        elif isinstance(value, ir.Const):
            self._check_constant(value)
        elif isinstance(value, ir.Expr):
            self._expression(scope, statement, body)

    def _alias(self, source: str, target: str) -> None:
        if source in self._own:
            self._own.add(target)
        for known in (self._values, self._methods):
            if source in known:
                known[target] = known[source]

    def _expression(self, scope: Any, statement: Any, body: list[Any]) -> None:
        value = statement.value
        if value.op in ("binop", "inplace_binop") and value.fn in OPERATORS:
            self._replace(scope, statement, body, OPERATORS[value.fn], [value.lhs, value.rhs])
        elif value.op == "unary" and value.fn in OPERATORS:
            self._replace(scope, statement, body, OPERATORS[value.fn], [value.value])
        elif value.op in ("exhaust_iter", "getitem", "static_getitem"):
            prepare = unpacked if value.op == "exhaust_iter" else there
            made = ir.Assign(value.value, scope.make_temp(value.loc), value.loc)
            self._replace(scope, made, body, prepare, [value.value])
            body.append(made)
            value.value = made.target
        elif value.op == "getattr":
            self._attribute(statement)
        elif value.op == "call" and value.func.name in self._methods:
            value.args = [self._methods[value.func.name], *value.args]
        elif value.op in ("yield", "make_function"):
            self._refuse(value.loc, "a function within it, or a generator")

    def _replace(self, scope: Any, statement: Any, body: list[Any], function: Any, args: list[Any]) -> None:
        called = scope.make_temp(statement.loc)
        body.append(ir.Assign(ir.Global("exact", function, statement.loc), called, statement.loc))
        statement.value = ir.Expr.call(called, args, (), statement.loc)

    def _attribute(self, statement: Any) -> None:
        value, target = statement.value, statement.target.name
        if value.value.name in self._values:
            holder = self._values[value.value.name]
            if isinstance(holder, ModuleType):
                name = f"{holder.__name__}.{value.attr}"
                if not hasattr(holder, value.attr):
                    self._refuse(value.loc, f"there is no {name}")
                self._known(statement, name, getattr(holder, value.attr))
        elif value.value.name in self._own:
            found = getattr(self._function.understudy_owner, value.attr, None)
            if isinstance(found, FunctionType):
                if found is getattr(KeyedOperator, value.attr, None):
                    self._refuse(value.loc, f"self.{value.attr}: {_OURS}")
                static = isinstance(_static(self._function.understudy_owner, value.attr), staticmethod)
                if not static:
                    self._methods[target] = value.value
                dispatcher = compiled(found, None if static else self._function.understudy_owner)
                statement.value = ir.Global(value.attr, dispatcher, value.loc)

    def _known(self, statement: Any, name: str, value: Any) -> None:
        """Put what takes the place of something that is known by name."""
        loc = statement.value.loc
        if isinstance(value, ModuleType):
            self._values[statement.target.name] = value
            statement.value = ir.Const(None, loc)  # a module itself is of no use at run time
            return
        statement.value = ir.Global(name, self._accepted(loc, name, value), loc)

    def _accepted(self, loc: Any, name: str, value: Any) -> Any:
        found = counterpart(value)
        if found is not NONE:
            return found
        if isinstance(value, int):
            self._refuse(loc, f"{name} is {value!r:.60}, which does not fit into 64 bits")
        is_function = callable(value) and not isinstance(value, type)
        told = f"the function {name}" if is_function else f"{name}, of type {type(value).__name__}"
        self._refuse(loc, f"it uses {told}: a compiled function can use numbers, math and functions of your own")

    def _check_constant(self, constant: Any) -> None:
        if isinstance(constant.value, int) and kind_of(constant.value) is None:
            self._refuse(constant.loc, f"{constant.value} does not fit into 64 bits")

    def _refuse(self, loc: Any, text: str) -> Any:
        raise refused(self._function, loc.line, text)


def _static(owner: Any, name: str) -> Any:
    return next((vars(cls)[name] for cls in owner.__mro__ if name in vars(cls)), None)


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, str) or kind_of(value) is not None


def _is_named_tuple(value: Any) -> bool:
    return issubclass(value, tuple) and hasattr(value, "_fields")


def _is_numbas(value: Any) -> bool:
    """What Numba itself has put into a function."""
    module = getattr(value, "__module__", None) or ""
    return isinstance(module, str) and module.split(".")[0] == "numba"


def _is_hashable(value: Any) -> bool:
    return getattr(type(value), "__hash__", None) is not None
