"""Slots: which a submitted job waits for, who holds them, and whether a cluster can ever have them all.

Pure functions of what the ResourceManager says (`HostList`). A cluster whose settings name its TaskManager processes
(`cluster.workers`) has a fixed number of slots: a job that needs more is refused when it is submitted. Where none are
named, more processes may come, and the job waits. Flink: a stand-alone ResourceManager fails what it cannot fulfil,
after resourcemanager.standalone.start-up-time; the others wait for slot.request.timeout (NoResourceAvailableException).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...messages import HostList, JobId
from ...messages.counted import counted

HOLDERS_SHOWN = 3


def too_few(processes: int, slots: int, hosts: HostList, workers: int, slots_of_worker: int) -> str:
    """Why `processes` TaskManagers of `slots` each can never run at once; empty: they can, or more hosts may come.

    `workers`: how many processes the settings name, 0 where they name none. One that is not registered yet is taken to
    offer `slots_of_worker`.
    """
    offered = [host.slots for host in hosts.hosts]
    offered += [slots_of_worker] * (workers - len(offered))
    needed, total = processes * slots, sum(offered)
    if not workers or sum(each // slots for each in offered) >= processes:
        return ""
    what = f"{counted(processes, 'TaskManager')} of {slots}" if slots > 1 else counted(processes, "TaskManager")
    if needed > total:
        why = f"cluster.workers names {counted(workers, 'process')}, so more never come"
    else:
        why = f"a TaskManager's slots are on one process, and these have {', '.join(map(str, offered))}"
    return (
        f"needs {counted(needed, 'slot')} ({what}), and the cluster has {total}: {why}. Lower the parallelism; or "
        "raise taskmanager.slots or name more hosts in cluster.workers, and then `understudy cluster stop` and `start`"
    )


def why_waiting(job_id: JobId, hosts: HostList, names: Mapping[JobId, str], workers: int) -> str:
    """What the job waits for, who holds it, and what to do, in one line; empty: it waits for no slot.

    `names` are those of jobs; `workers` as above.
    """
    wanted = [each.slots for each in hosts.awaited if each.job_id == job_id]
    if not wanted:
        return ""
    what = f"waiting for {counted(sum(wanted), 'slot')}"
    if not hosts.hosts:
        return f"{what}: no TaskManager process is registered; start one with `understudy taskmanager`"
    free = sum(host.free_slots for host in hosts.hosts)
    parts = [f"{what}: {free} are free of {sum(host.slots for host in hosts.hosts)}"]
    if free >= max(wanted):
        parts.append(f"{max(wanted)} have to be free on one host")
    held = Counter[JobId]()
    for host in hosts.hosts:
        for each in host.task_managers:
            held[each.job_id] += each.slots
    for holder, count in held.most_common(HOLDERS_SHOWN):
        whose = "this job" if holder == job_id else f"job {names.get(holder, '')!r} ({holder})"
        parts.append(f"{whose} holds {count}")
    if len(held) > HOLDERS_SHOWN:
        parts.append(f"{counted(len(held) - HOLDERS_SHOWN, 'other job')} hold the rest")
    or_more = "" if workers else ", or when more TaskManager processes come (`understudy taskmanager`)"
    parts.append(f"it goes on when they are free{or_more}")
    return "; ".join(parts)
