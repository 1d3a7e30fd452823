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

    def __reduce__(self) -> tuple[type[ModuleSource], tuple[str, str, bool]]:
        """By its values, and not field by field, which takes twice the time: a job may have hundreds."""
        return ModuleSource, (self.path, self.digest, self.everywhere)
