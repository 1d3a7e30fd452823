"""What can go wrong with processes that stand alone.

HostError
├── InvalidSettings     a setting that cannot be, with where it stands, what was found and what was wanted
├── NoKeyFile           the cluster's key file is not there
├── ProgramRefused      a job's stored code is gone, or not signed with this cluster's key
└── ProcessFailed       a process could not be started or stopped; with the end of what it wrote
"""

from __future__ import annotations


class HostError(Exception):
    """Base of all errors of runtime/hosts/."""


class InvalidSettings(HostError, ValueError):
    """The settings of a cluster cannot be used; each problem is a line of the text."""


class NoKeyFile(HostError):
    """There is no key file; the text says how to make one."""


class ProgramRefused(HostError):
    """The code of a job is not run: it is missing, or its signature is not that of this cluster's key."""


class ProcessFailed(HostError):
    """A JobManager or TaskManager process did not start or stop as wanted."""
