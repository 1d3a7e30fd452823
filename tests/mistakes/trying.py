"""Makes a mistake on a cluster, and says when it was found and what its author reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy import Cluster, JobFailed, StreamEnvironment

from .programs import Mistake

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """`when`: "build", "submit", "running", or "not found"; `text`: all that is said, the first line first."""

    when: str
    text: str
    seconds: float

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")


def find(
    mistake: Mistake, cluster: Cluster, folder: Path, *, checkpoints: bool, patience: float = PATIENCE_SECONDS
) -> Found:
    """Build, submit and run the program, for as long as a patient user waits."""
    began = time.monotonic()

    def found(when: str, error: BaseException | str) -> Found:
        return Found(when, str(error), time.monotonic() - began)

    settings: dict[str, Any] = {"checkpoint_interval_ms": 100} if checkpoints else {}
    env = StreamEnvironment(**settings)
    try:
        mistake.build(env, folder)
    except Exception as error:  # noqa: BLE001 - whatever the user meets
        return found("build", error)
    try:
        job = cluster.submit(env, name=mistake.name.replace(" ", "-"))
    except Exception as error:  # noqa: BLE001 - the same
        return found("submit", error)
    try:
        job.wait(patience)
    except (JobFailed, TimeoutError) as error:
        return found("running", error)
    finally:
        _end(job.cancel)
    return found("not found", "the job has finished")


def _end(cancel: Callable[[], Any]) -> None:
    """Whatever became of it: the next mistake wants the cluster."""
    cancel().result(timeout=60)


def problems(mistake: Mistake, found: Found) -> list[str]:
    """What is missing in what the author reads."""
    missing = [f"does not name {name}" for name in mistake.names if name not in found.text]
    if not any(remedy in found.text for remedy in mistake.remedies):
        missing.append(f"says none of {', '.join(map(repr, mistake.remedies))}")
    if found.when == "not found":
        missing.append("was not found")
    if found.seconds > PATIENCE_SECONDS:
        missing.append(f"took {found.seconds:.1f} s")
    return missing
