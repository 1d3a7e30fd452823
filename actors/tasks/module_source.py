"""ModuleSource: which text of a module the job was submitted with. Who reads the files: runtime/clusters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module's file where the job was submitted."""

    path: str
    digest: str
    everywhere: bool
    """Whether any host's copy must be the same: of modules that operators name. Of others, a file at this path must."""
