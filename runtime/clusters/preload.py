"""preload: what modules of users import of this library, imported once, before TaskManagers are forked.

A module with a job's operators mostly builds the job as well, so it imports streams and clusters: a tenth of a second
in each TaskManager, also in one that takes the place of a lost one, and its tasks wait for it.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from ...actors.tasks.job_program import JobProgram

_OURS = f"{__name__.partition('.')[0]}."
_LOAD = f"{__name__.rpartition('.')[0]}.interface:load"
"""Named and not imported: clusters are made of this module, too."""


def warm_up_of(program: JobProgram) -> tuple[str, ...]:
    """As in JobProgram; with the programming interface, if the program names a module that uses it."""
    if any(map(uses_this_library, program.modules)):
        return (*program.warm_up, _LOAD)
    return program.warm_up


def uses_this_library(name: str) -> bool:
    """Whether a module of the user's has something of this library."""
    if name.startswith(_OURS):
        return False
    held = list(getattr(sys.modules.get(name), "__dict__", {}).values())
    names = [each.__name__ if isinstance(each, ModuleType) else each.__module__ for each in held if _has_module(each)]
    return any(isinstance(each, str) and f"{each}.".startswith(_OURS) for each in names)


def _has_module(value: object) -> bool:
    return isinstance(value, (type, FunctionType, ModuleType))
