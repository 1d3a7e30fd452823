"""Probes: what is watched inside a simulated cluster, without its knowing, and the oracles that judge it as it goes.

Tasks are watched where they touch the outside: the ends of their channels, and the calls that their operators get.
The cut of every completed checkpoint must be consistent: of each channel, the consumer's snapshot covers just those
records that the producer's covers; where barriers overtake, with what it has in flight. And no operator may be notified
that a checkpoint is complete which is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ....actors.flow.channels import InputChannel, OutputChannel
from ....actors.flow.elements import CheckpointBarrier, Element, WatermarkStatus
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ....actors.tasks.job_program import JobProgram
from ....messages import ChannelDescriptor, CheckpointCompleted, CheckpointId, JobId, VertexId
from ....state import CheckpointStorage
from ....state.checkpoint_folders import job_directory
from ...connectors.files.collect_sink import is_collected
from ...connectors.files.committed_files import checkpoint_of
from ...oracles import Violation
from .checkpoint_deaths import CheckpointDeaths
from .data_plane import SimulatedDataPlane
from .faults import UserCall
from .in_flight import Place, Way, place_of, records_in_flight, ways_back
from .seen_files import SeenFiles
from .wires import Network
from .world import Process, World

Moment: TypeAlias = Literal["closed waiting", "between timers", "idle"]
"""A channel was closed while records that had been sent were still to be taken; a barrier has come while timers were
due; a channel said that nobody is to wait for it.
"""


class SimulatedUserError(RuntimeError):
    """What user code raises when a FailingOperator fault says so."""


@dataclass(slots=True)
class _Channel:
    """How many records went in before each barrier, and came out before each snapshot."""

    job_id: JobId
    place: Place
    sent: int = 0
    polled: int = 0
    sent_before: dict[CheckpointId, int] = field(default_factory=dict)
    polled_before: dict[CheckpointId, int] = field(default_factory=dict)


class Probes:
    """All that the watchers of one world have seen."""

    def __init__(self, world: World) -> None:
        self.violations: list[Violation] = []
        self.files_may_rot = False
        self.exactly_once = True
        self.may_overtake = False
        """Whether barriers may overtake records, which are part of the checkpoint then."""
        self.when_committed: Callable[[], None] = lambda: None
        """Called after each commit of a sink, in the middle of whatever happens."""
        self.when_made: Callable[[Operator], object] = lambda _: None
        """Called with each operator that a task is given, before anything is asked of it."""
        self.deaths = CheckpointDeaths()
        """Processes that are to die at a moment of a checkpoint."""
        self.moments: set[Moment] = set()
        """What was seen that no trace says."""
        self._world = world
        self._channels: dict[tuple[JobId, ChannelDescriptor], _Channel] = {}
        """By all that a deployment says: another JobManager counts the channels of a job from the beginning."""
        self._failing: Counter[UserCall] = Counter()
        self._completed: dict[str, set[CheckpointId]] = {}
        """By the folder of the job: a restored job uses ids that the other one may have used, too."""

    # ---- faults

    def fail_next(self, call: UserCall) -> None:
        """The next call of this kind, in whichever task, raises."""
        self._failing[call] += 1

    def may_raise(self, call: UserCall) -> None:
        if self._failing[call]:
            self._failing[call] -= 1
            raise SimulatedUserError(f"a fault of the simulator: {call} raises")

    # ---- what is seen

    def channel(self, job_id: JobId, descriptor: ChannelDescriptor) -> _Channel:
        return self._channels.setdefault((job_id, descriptor), _Channel(job_id, place_of(descriptor)))

    def stored(self, path: str) -> None:
        """A file was renamed to this path: a metadata file's name says that its checkpoint is complete."""
        folder, _, name = path.rpartition("/")
        if name == "_metadata":
            job, _, checkpoint = folder.rpartition("/chk-")
            checkpoint_id = CheckpointId(int(checkpoint))
            self._completed.setdefault(job.rpartition("/")[2], set()).add(checkpoint_id)
            self.deaths.completed(checkpoint_id)

    def removed(self, path: str) -> None:
        """What was committed stays, unless the job has to go back behind it because a file has rotted; and never does
        it go back behind its first checkpoint.
        """
        folder, _, name = path.rpartition("/")
        if "/collected/" not in path or name.startswith(".") or "/." in folder:
            return
        if not self.files_may_rot:
            self.report("nothing-taken-back", f"committed output is removed, and no file has rotted: {path}")
            return
        own = self._completed.get(folder.partition("/collected/")[2].partition("/")[0])
        if own and is_collected(name) and checkpoint_of(name) <= min(own):
            self.report("nothing-taken-back", f"what the job's first checkpoint covers is removed: {path}")

    def recovered(self, process: Process, sink: TwoPhaseCommitSink[Any], ended: Iterable[tuple[str, Any]]) -> None:
        """A sink has been opened. Of the transactions that it restored, those that were prepared are committed now, and
        the one that was open is aborted: else it holds up whoever reads the outside system.
        """
        done = list(ended)
        for checkpoint_id, _, handle in sink._transactions.get():
            wanted = "abort" if checkpoint_id is None else "commit"
            if (wanted, handle) not in done:
                self.report(
                    "restored-transactions",
                    f"{sink.context.name!r} on {process.name} restored transaction {handle!r}, and did not {wanted} it",
                )

    def _completed_by(self, operator: Operator) -> set[CheckpointId]:
        """The job's checkpoints; as long as it has none, those of all, since it may have been restored from one."""
        own = self._completed.get(job_directory(operator.context.job_id))
        return own or set().union(*self._completed.values())

    def told_complete(self, process: Process, operator: Operator, checkpoint_id: CheckpointId) -> None:
        if checkpoint_id not in self._completed_by(operator):
            self.report(
                "commits-after-completion",
                f"{operator.context.name!r} on {process.name} got the completion of checkpoint {checkpoint_id}, "
                "whose metadata was never stored",
            )

    def commits(self, process: Process, sink: TwoPhaseCommitSink[Any], handle: Any) -> None:
        """Transactions that a sink prepared since it opened may be committed when its checkpoint, or a later one, is
        complete.
        """
        newest = max(self._completed_by(sink), default=CheckpointId(0))
        its = next((each for each in sink._pending if each.handle == handle), None)  # handles may be the same
        if its is not None and (its.checkpoint_id or 0) > newest:
            self.report(
                "commits-after-completion",
                f"{sink.context.name!r} on {process.name} commits what it prepared for checkpoint "
                f"{its.checkpoint_id}, whose metadata was never stored",
            )

    def look(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function that reads files: not on behalf of a process, so that nothing disturbs it."""
        before, self._world.current = self._world.current, None
        try:
            function(*args)
        finally:
            self._world.current = before

    def completed(self, event: CheckpointCompleted, storage: CheckpointStorage, seen: SeenFiles) -> None:
        """Judge the cut of a completed checkpoint, whose files are in this storage.

        What is in flight may be more than what the consumer has not polled: it may have polled it, and not processed.
        """
        in_flight = records_in_flight(storage, event.path, seen) if self.may_overtake else Counter()
        back = ways_back(storage, event.path, seen) if any(each.feedback for _, each in self._channels) else {}
        missing: Counter[Way] = Counter()
        for (job_id, descriptor), channel in self._channels.items():
            if job_id != event.job_id:
                continue
            channel_id = descriptor.channel_id
            sent = channel.sent_before.get(event.checkpoint_id)
            polled = channel.polled_before.get(event.checkpoint_id)
            if sent is None and polled is None:
                continue
            if sent is None or polled is None:
                side = "consumer" if sent is None else "producer"
                self.report("consistent-cut", f"{event.checkpoint_id}: only the {side} of {channel_id} is part of it")
                continue
            if event.final and channel.sent > sent:
                self.report(
                    "consistent-cut",
                    f"{channel.sent - sent} records came on channel {channel_id} behind the barrier of checkpoint "
                    f"{event.checkpoint_id}, which is the last",
                )
            if descriptor.feedback:
                for (head, subtask), (edges, _) in back.items():
                    if descriptor.edge in edges and descriptor.consumer_subtask == subtask:
                        missing[head, subtask] += sent - polled
                continue
            flown = sent if in_flight is None else in_flight[channel.place]
            if polled + flown < sent or (polled > sent and self.exactly_once):
                self.report(
                    "consistent-cut",
                    f"checkpoint {event.checkpoint_id}, channel {channel_id}: the producer's snapshot covers "
                    f"{sent} records, the consumer's {polled} and {flown} in flight",
                )
        for way, records in missing.items():
            if records > back[way][1]:
                self.report(
                    "consistent-cut",
                    f"checkpoint {event.checkpoint_id}: {records} records were on their way back to subtask {way[1]} "
                    f"of {way[0]}, the head of a loop, and its snapshot has {back[way][1]} of them",
                )

    def report(self, oracle: str, problem: str) -> None:
        self.violations.append(Violation(oracle, problem))
        self._world.trace.add("the oracle", "violation", oracle, problem)


class WatchedDataPlane(SimulatedDataPlane):
    """Counts what goes through each channel of a job. `inputs`: those of the task that is being put together."""

    def __init__(self, endpoint: str, network: Network, probes: Probes, window_bytes: int, job_id: JobId) -> None:
        super().__init__(endpoint, network, window_bytes=window_bytes)
        self._probes = probes
        self._job_id = job_id
        self.inputs: list[_Channel] = []

    def open_output(self, descriptor: ChannelDescriptor, wake: Callable[[], None]) -> OutputChannel:
        return _WatchedOutput(super().open_output(descriptor, wake), self._probes.channel(self._job_id, descriptor))

    def open_input(self, descriptor: ChannelDescriptor, wake: Callable[[], None], channels: int = 1) -> InputChannel:
        seen = self._probes.channel(self._job_id, descriptor)
        self.inputs.append(seen)
        return _WatchedInput(super().open_input(descriptor, wake, channels), seen, self._probes)


class _WatchedOutput:
    def __init__(self, channel: OutputChannel, seen: _Channel) -> None:
        self._channel = channel
        self._seen = seen
        self.is_available = channel.is_available
        self.close = channel.close

    def send(self, element: Element) -> None:
        if isinstance(element, CheckpointBarrier):
            self._seen.sent_before[element.checkpoint_id] = self._seen.sent
        elif hasattr(element, "__len__"):
            self._seen.sent += len(element)
        self._channel.send(element)

    @property
    def bytes_passed(self) -> int:
        return self._channel.bytes_passed

    @property
    def usage(self) -> float:
        return self._channel.usage


class _WatchedInput:
    def __init__(self, channel: InputChannel, seen: _Channel, probes: Probes) -> None:
        self._channel = channel
        self._seen = seen
        self._probes = probes

    def close(self) -> None:
        if self._seen.sent > self._seen.polled:
            self._probes.moments.add("closed waiting")
        self._channel.close()

    def poll(self) -> Element | None:
        element = self._channel.poll()
        if element is not None and hasattr(element, "__len__"):
            self._seen.polled += len(element)
        elif isinstance(element, WatermarkStatus) and element.is_idle:
            self._probes.moments.add("idle")
        return element

    @property
    def bytes_passed(self) -> int:
        return self._channel.bytes_passed

    @property
    def usage(self) -> float:
        return self._channel.usage


class WatchedProgram(JobProgram):
    """The job's program; the operators that it makes are watched."""

    __slots__ = ("data_plane", "probes", "process")

    probes: Probes
    process: Process
    data_plane: WatchedDataPlane

    @staticmethod
    def watch(program: JobProgram, probes: Probes, process: Process, data_plane: WatchedDataPlane) -> WatchedProgram:
        watched = WatchedProgram(**{each.name: getattr(program, each.name) for each in fields(program)})
        object.__setattr__(watched, "probes", probes)
        object.__setattr__(watched, "process", process)
        object.__setattr__(watched, "data_plane", data_plane)
        return watched

    def chain(self, vertex_id: VertexId) -> list[Operator]:
        """A task asks for its operators first, and opens its channels then."""
        operators = super().chain(vertex_id)
        inputs = self.data_plane.inputs = []
        for position, operator in enumerate(operators):
            self.probes.when_made(operator)
            _watch(operator, self.probes, self.process, inputs if position == 0 else [])
        return operators


def _watch(operator: Any, probes: Probes, process: Process, inputs: list[_Channel]) -> None:
    """Put watching calls in front of the operator's own."""
    on_checkpoint, on_complete = operator.on_checkpoint, operator.on_checkpoint_complete

    def checkpoint(checkpoint_id: CheckpointId) -> Any:
        for channel in inputs:
            channel.polled_before[checkpoint_id] = channel.polled
        probes.may_raise("on_checkpoint")
        if isinstance(operator, KeyedOperator) and _is_firing(operator):
            probes.moments.add("between timers")
        result = on_checkpoint(checkpoint_id)
        probes.deaths.had_barrier(process, checkpoint_id)
        return result

    def complete(checkpoint_id: CheckpointId) -> Any:
        probes.told_complete(process, operator, checkpoint_id)
        result = on_complete(checkpoint_id)
        probes.deaths.was_told(process, checkpoint_id)
        return result

    operator.on_checkpoint = checkpoint
    operator.on_checkpoint_complete = complete
    if isinstance(operator, TwoPhaseCommitSink):
        operator.commit = _watched_commit(operator, probes, process)  # type: ignore[method-assign]
        operator.open = _watched_open(operator, probes, process)  # type: ignore[method-assign]
    calls: tuple[UserCall, ...] = ("open", "process_batch", "commit")
    for call in calls:
        if hasattr(operator, call):
            setattr(operator, call, _failing(getattr(operator, call), probes, call))


def _is_firing(operator: KeyedOperator) -> bool:
    """Whether there are timers that its watermark has made due."""
    due_ms = operator.timers.queues.event.next_ms()
    return due_ms is not None and due_ms <= operator.watermark


def _watched_commit(sink: TwoPhaseCommitSink[Any], probes: Probes, process: Process) -> Any:
    commit: Callable[[Any], Any] = sink.commit

    def committed(handle: Any) -> Any:
        probes.commits(process, sink, handle)
        result = commit(handle)
        probes.look(probes.when_committed)
        return result

    return committed


def _watched_open(sink: TwoPhaseCommitSink[Any], probes: Probes, process: Process) -> Any:
    opened: Callable[[], None] = sink.open

    def open_and_judge() -> None:
        ended: list[tuple[str, Any]] = []
        for name in ("commit", "abort"):
            recovering = f"recover_and_{name}"
            is_own = getattr(type(sink), recovering) is not getattr(TwoPhaseCommitSink, recovering)
            called = recovering if is_own else name
            setattr(sink, called, _noting(getattr(sink, called), name, ended))
        opened()
        probes.recovered(process, sink, ended)

    return open_and_judge


def _noting(function: Callable[[Any], Any], name: str, ended: list[tuple[str, Any]]) -> Any:
    def noted(handle: Any) -> Any:
        ended.append((name, handle))
        return function(handle)

    return noted


def _failing(function: Callable[..., Any], probes: Probes, call: UserCall) -> Callable[..., Any]:
    def called(*args: Any) -> Any:
        probes.may_raise(call)
        return function(*args)

    return called
