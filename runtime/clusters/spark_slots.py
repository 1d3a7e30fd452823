"""Which task slots Spark has, and why a TaskManager that was handed to it has none yet.

A TaskManager waits in Spark's queue until an executor has a free slot, and Spark says at most that nothing was
accepted. Its books know the executors, their cores and what runs there; its settings say which of them is in the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...messages.counted import counted

_UNLIMITED = str(2**31 - 1)
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Executor:
    """One that is registered and alive."""

    executor_id: str
    host: str
    cores: int
    slots: int
    running: int


@dataclass(frozen=True, slots=True)
class Found:
    """What Spark's books and settings say of an application. `has_lost`: it had executors that are gone."""

    master: str
    application: str
    executors: list[Executor]
    has_lost: bool
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Shortage:
    """`why` there is no slot, and what to do. `lasting`: the same without how many are taken, which is another number
    at each look while batch jobs run beside.
    """

    why: str
    lasting: str


def shortage(context: Any, task_managers: int, of_job: int) -> Shortage | None:
    """Why Spark has no slot for a TaskManager; None: it has slots for all. `of_job`: how many of the job's
    `task_managers` run.
    """
    settings = dict(context.getConf().getAll())
    found = Found(str(context.master), str(context.applicationId), executors(context), _has_lost(context), settings)
    return found_short(found, task_managers, of_job)


def runs(context: Any, group: str) -> bool:
    """Whether a task of this group's newest Spark job runs on an executor."""
    tracker = context.statusTracker()
    job = max(tracker.getJobIdsForGroup(group), default=None)
    info = None if job is None else tracker.getJobInfo(job)
    if info is None:
        return False
    stages = [stage for each in info.stageIds if (stage := tracker.getStageInfo(each)) is not None]
    return any(stage.numActiveTasks for stage in stages)


def executors(context: Any) -> list[Executor]:
    """Those that are there now; on a local master the driver itself."""
    is_local = str(context.master) == "local" or str(context.master).startswith("local[")
    listed = context._jsc.sc().statusStore().executorList(True)
    found = []
    for place in range(listed.size()):
        each = listed.apply(place)
        if (str(each.id()) == "driver") is is_local:
            host, slots = str(each.hostPort()).rpartition(":")[0], int(each.maxTasks())
            found.append(Executor(str(each.id()), host, int(each.totalCores()), slots, int(each.activeTasks())))
    return found


def found_short(spark: Found, task_managers: int, of_job: int) -> Shortage | None:
    """By what was found. None: slots enough are free."""
    wants = f"the job wants {counted(task_managers, 'TaskManager')}, a Spark task slot each for as long as it runs"
    found = sorted(spark.executors, key=lambda each: each.executor_id)
    if not found:
        none = f"{wants}, and Spark has no executor for {spark.application}{_what_for_one(spark)}"
        return Shortage(none, none)
    slots = sum(each.slots for each in found)
    taken = sum(min(each.running, each.slots) for each in found)  # its books may have more for a moment
    if slots - taken >= task_managers - of_job:
        return None
    several = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    each = ", ".join(
        f"{one.executor_id} on {one.host} with {counted(one.cores, 'core')} for {counted(one.slots, 'task')}"
        for one in found[:_SHOWN]
    )
    has = f"{wants}; Spark has {counted(len(found), 'executor')} ({each}{several})"
    others = taken - of_job
    whose = f", {others} of them not by this job" if others > 0 else ""
    advice = _what_for_more(spark.master, spark.settings, sum(one.cores for one in found), len(found))
    fewer = f", or give SparkCluster task_managers={slots}" if slots < task_managers else ""
    return Shortage(f"{has}, and {taken} of {slots} slots are taken{whose}: {advice}{fewer}", f"{has}: {advice}{fewer}")


def _has_lost(context: Any) -> bool:
    books = context._jsc.sc().statusStore()
    return int(books.executorList(False).size()) > int(books.executorList(True).size())


def _what_for_one(spark: Found) -> str:
    settings, master = spark.settings, spark.master
    wanted = (
        f"spark.executor.memory ({settings.get('spark.executor.memory', '1g')}) and spark.executor.cores "
        f"({settings.get('spark.executor.cores', 'all of a worker')}) free"
    )
    if not master.startswith("spark://"):
        return f" yet: see whether {master} has hosts with {wanted}, and whether this application's queue gets them"
    workers = (
        f"whether workers are there, and have {wanted}: start workers, lower these settings, or end the application "
        "that holds all cores (spark.cores.max limits one)"
    )
    if not spark.has_lost:
        return f" yet: see at the page of its master ({master}) {workers}"
    return (
        f" any more: see at the page of its master ({master}) whether that lists the application; if not, it was "
        "started again, without spark.deploy.recoveryMode, and gives the application no executor again: start this "
        f"program again (a job with resume='latest' goes on from its last checkpoint). If it does, see {workers}"
    )


def _what_for_more(master: str, settings: Mapping[str, str], cores: int, count: int) -> str:
    """The settings that are reached, and could be raised."""
    most = settings.get("spark.cores.max")
    per_task = int(settings.get("spark.task.cpus", "1"))
    limits = []
    if most is not None and most.isdigit() and cores + per_task > int(most):
        limits.append(f"raise spark.cores.max ({most})")
    if settings.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        upper = settings.get("spark.dynamicAllocation.maxExecutors", _UNLIMITED)
        if upper.isdigit() and int(upper) <= count:
            limits.append(f"raise spark.dynamicAllocation.maxExecutors ({upper})")
    elif (instances := settings.get("spark.executor.instances", "")).isdigit() and int(instances) <= count:
        limits.append(f"raise spark.executor.instances ({instances})")
    if per_task > 1:
        limits.append(f"lower spark.task.cpus ({per_task}), the cores that each TaskManager takes")
    if master.startswith("local"):
        limits.append(f"make the session with more slots than {master}")
    return " or ".join(limits) or "start more workers, or give them more cores or memory"
