"""Chaos on real processes: a job whose processes, connections and disks fail, and the judgement of what it commits."""

from .faults import Counts, Cut, Disk, Fault, Freeze, FullDisk, Kill, Pace, Round, Slow, Stall, Strike, Target, plan
from .proxied_cluster import ProxiedCluster, ProxiedLocalCluster, ProxiedSparkCluster
from .proxy import Link, Proxy
from .report import Report
from .run import Options, run

__all__ = [
    "Counts",
    "Cut",
    "Disk",
    "Fault",
    "Freeze",
    "FullDisk",
    "Kill",
    "Link",
    "Options",
    "Pace",
    "ProxiedCluster",
    "ProxiedLocalCluster",
    "ProxiedSparkCluster",
    "Proxy",
    "Report",
    "Round",
    "Slow",
    "Stall",
    "Strike",
    "Target",
    "plan",
    "run",
]
