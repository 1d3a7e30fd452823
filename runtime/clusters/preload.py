"""preload: what modules of users import of this library, imported once, before TaskManagers are forked.

A module with a job's operators mostly builds the job as well, so it imports streams and clusters: a tenth of a second
in each TaskManager, also in one that takes the place of a lost one, and its tasks wait for it.
"""

from __future__ import annotations

from ...actors.tasks.job_program import JobProgram

_OURS = f"{__name__.partition('.')[0]}."
_LOAD = f"{__name__.rpartition('.')[0]}.interface:load"
"""Named and not imported: clusters are made of this module, too."""


def warm_up_of(program: JobProgram) -> tuple[str, ...]:
    """As in JobProgram; with the programming interface, if the program names a module of the user's."""
    if all(name.startswith(_OURS) for name in program.modules):
        return program.warm_up
    return (*program.warm_up, _LOAD)
