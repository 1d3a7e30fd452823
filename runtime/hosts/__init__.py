"""Processes that stand alone, on one host or several: a JobManager and TaskManagers that no parent forks, their
settings (understudy.yaml), logs and pid files, how ssh starts and stops them, and StandaloneCluster for their users.

How a TaskManager of one job runs is not at home here (`clusters`), nor who leads (`high_availability`).
"""

from .errors import HostError, InvalidSettings, NoKeyFile, ProcessFailed, ProgramRefused
from .settings import HostSettings
from .standalone_cluster import StandaloneCluster

__all__ = [
    "HostError",
    "HostSettings",
    "InvalidSettings",
    "NoKeyFile",
    "ProcessFailed",
    "ProgramRefused",
    "StandaloneCluster",
]
