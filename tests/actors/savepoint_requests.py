"""Requests for savepoints, by token, as the JobManager hands them to a job."""

from __future__ import annotations

from understudy.actors.checkpoints.checkpoint_events import FinalSavepointWanted, TriggerSavepointNow
from understudy.actors.checkpoints.savepoint_request import Afterwards, SavepointRequest


def savepoint_now(token: str, *, stop: bool = False, then_cancel: bool = False) -> TriggerSavepointNow:
    afterwards = Afterwards.STOP if stop else Afterwards.CANCEL if then_cancel else Afterwards.RUN_ON
    return TriggerSavepointNow(SavepointRequest(token, afterwards=afterwards))


def drain(token: str) -> FinalSavepointWanted:
    return FinalSavepointWanted(SavepointRequest(token, afterwards=Afterwards.DRAIN))
