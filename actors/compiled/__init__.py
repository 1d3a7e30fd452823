"""Compiled operators: `process` and `on_timer` turned into machine code by Numba (docs/compiled.md).

Numba itself is imported only when something is compiled.
"""

from .compiled_process import CompiledProcess, emitted_schema, equip
from .errors import CannotCompile, NullRead, NumbaMissing
from .kernel_cache import warm_up

__all__ = ["CannotCompile", "CompiledProcess", "NullRead", "NumbaMissing", "emitted_schema", "equip", "warm_up"]
