"""InletSender: the actor that brings a process's records into one inlet of a job, and into it once.

    waiting -> under way (in a request) -> last, or never will
        ^           |
        '-----------'  no answer, or one that says that not all was taken

What all senders of the process have waiting goes into the next request together: one or two of them are under way to
each subtask of the inlet, and some more as long as they are well filled. After a request without an answer, as when a
TaskManager was killed, all that may be lost is sent again, in its order, with its numbers. It goes on until the job has
ended. Whoever waits, and how long, is not at home here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...actors.actor import Actor
from ...actors.ask_errors import AskTimeout, NotRunning, RemoteActorError
from ...actors.context import Ref
from ...messages import InletAnswer, JobId, SendToInlet, SubtaskIndex
from ..connectors import to_payload
from .inlet_items import Item, is_same, packed, question
from .job_errors import SEND_AGAIN, InletClosed, NumberGap
from .sent import settle

REQUEST_BYTES = 1024 * 1024
"""A request that has so much takes no more; a single batch may be larger."""
_WELL_FILLED_BYTES = 128 * 1024
_MOST_UNDER_WAY = 4
_USUALLY_UNDER_WAY = 2
"""One is written while the next is on its way, and fills while both are."""
_WORTH = 8
"""For each call that waits, at most this many may be under way if it is to get a request now: to send, log and answer
a request takes as long as dozens of records.
"""
_LINGER_MS = 1.0
"""For those who were just answered, and mostly send again at once: a few that wait go with them."""
_PAUSE_MS, _LONGEST_PAUSE_MS = 5.0, 200.0
"""Before something is sent again; doubled each time."""
_FULL = "the job takes its records more slowly than they come, and has no room for more"
_RESTARTING = "its job is restarting, or its TaskManager does not answer"


@dataclass(slots=True)
class _Lane:
    """The way to one subtask. `open` and then `waiting` are in the order of the numbers."""

    subtask: SubtaskIndex
    open: deque[Item] = field(default_factory=deque)
    """Those in requests that are under way."""
    waiting: deque[Item] = field(default_factory=deque)
    waiting_bytes: int = 0
    under_way: int = 0
    is_broken: bool = False
    """Something may be lost: once nothing is under way, all that is open waits again."""
    is_full: bool = False
    is_pausing: bool = False
    pause_ms: float = _PAUSE_MS


@dataclass(slots=True)
class _Sender:
    lane: _Lane
    next: int | None
    """The number of its next record; None: the job has to be asked."""
    held: deque[Item] = field(default_factory=deque)
    """Without a number as long as it is."""


@dataclass(frozen=True, slots=True)
class Wake:
    """There is something in the inbox, after there was nothing."""


@dataclass(frozen=True, slots=True)
class _Answered:
    lane: _Lane
    asked: tuple[Item, ...]
    answer: InletAnswer


@dataclass(frozen=True, slots=True)
class _Failed:
    lane: _Lane
    error: BaseException


@dataclass(frozen=True, slots=True)
class _Again:
    lane: _Lane


@dataclass(frozen=True, slots=True)
class _Lingered:
    lane: _Lane


class InletSender(Actor):
    """`inbox`: what other threads put there, who then tell it `Wake`; `gone`: senders that send nothing any more."""

    def __init__(
        self,
        job_manager: Ref,
        job_id: JobId,
        inlet: str,
        inbox: deque[tuple[Item, int, bool]],
        gone: deque[str],
    ) -> None:
        """In the inbox stand items, with their subtask and whether their sender's name is new in the world."""
        self._job_manager = job_manager
        self._job_id = job_id
        self._inlet = inlet
        self._inbox = inbox
        self._gone = gone
        self._lanes: dict[int, _Lane] = {}
        self._senders: dict[str, _Sender] = {}
        self.is_woken = False
        """Whether a Wake is on its way."""
        self.closed: Exception | None = None
        """Why nothing more can be sent."""
        self.trouble = ""
        """Why the last request brought nothing, as far as that is known. Any thread may read it."""

    def on_receive(self, message: Any) -> None:
        match message:
            case Wake():
                self.is_woken = False  # before looking: what comes meanwhile wakes it again
                self._take_in()
            case _Answered(lane, asked, answer):
                lane.under_way -= 1
                self._answered(lane, asked, answer)
                if lane.is_broken or not _is_few(lane.waiting, len(asked)):
                    self._go_on(lane)
                else:
                    self.context.schedule(_LINGER_MS, _Lingered(lane))
            case _Failed(lane, error):
                lane.under_way -= 1
                lane.is_broken = True
                self._failed(error)
                self._go_on(lane)
            case _Again(lane):
                lane.is_pausing = False
                self._go_on(lane)
            case _Lingered(lane):
                self._go_on(lane)

    def on_stop(self) -> None:
        """Its system ends."""
        self._close(InletClosed(f"inlet {self._inlet!r}: the cluster was closed; {SEND_AGAIN}"))

    # -- numbers

    def refuse_all(self) -> None:
        """Let all fail that is in the inbox of one that is closed. From any thread."""
        for item, _, _ in self._in_inbox():
            settle([item.sent], self.closed)

    def _in_inbox(self) -> Iterator[tuple[Item, int, bool]]:
        """Takes one after the other out. Of one that is closed several threads do so at once."""
        while self._inbox:
            try:
                taken = self._inbox.popleft()
            except IndexError:  # another thread was faster
                return
            yield taken

    def _take_in(self) -> None:
        while self._gone:
            self._senders.pop(self._gone.popleft(), None)
        lanes: dict[int, _Lane] = {}
        for item, subtask, is_new in self._in_inbox():
            if self.closed is not None:
                settle([item.sent], self.closed)
                continue
            lane = self._lanes.get(subtask) or self._lanes.setdefault(subtask, _Lane(SubtaskIndex(subtask)))
            sender = self._senders.get(item.sender)
            if sender is None:
                sender = self._senders[item.sender] = _Sender(lane, 1 if is_new else None)
                if not is_new:
                    self._wait(lane, question(item.sender))
            if sender.next is None:
                sender.held.append(item)
            else:
                self._number(sender, item)
            lanes[subtask] = lane
        for lane in lanes.values():
            self._go_on(lane)

    def _number(self, sender: _Sender, item: Item) -> None:
        """Give it its number, or see what became of the one that it wants; `next` is known."""
        assert sender.next is not None
        wanted = item.number or sender.next
        if not item.count:
            item.number = wanted
            self._wait(sender.lane, item)
        elif wanted > sender.next:
            settle([item.sent], NumberGap(self._inlet, item.sender, wanted, sender.next))
        elif wanted + item.count > sender.next:  # the inlet leaves out those that are there already
            item.number, sender.next = wanted, wanted + item.count
            item.sent.number = item.last
            self._wait(sender.lane, item)
        else:
            self._join(sender.lane, item, wanted)

    def _join(self, lane: _Lane, item: Item, number: int) -> None:
        """It was sent already: what is known of that holds for it too."""
        item.number = number
        item.sent.number = item.last
        same = next((each for each in (*lane.open, *lane.waiting) if is_same(each, item)), None)
        if same is None:
            settle([item.sent])
        else:
            question = Item(item.sender, item.sent, number=item.last + 1)
            self._wait(lane, question)

    def _wait(self, lane: _Lane, item: Item) -> None:
        lane.waiting.append(item)
        lane.waiting_bytes += len(item.data)

    # -- requests

    def _go_on(self, lane: _Lane) -> None:
        if lane.is_broken and not lane.under_way:
            lane.is_broken = False
            again = [each for each in lane.open if not each.is_probe or self._is_unknown(each.sender)]
            lane.waiting.extendleft(reversed(again))
            lane.waiting_bytes += sum(len(each.data) for each in again)
            lane.open.clear()
            if self.closed is not None:
                self._refuse(lane, self.closed)
            self._pause(lane)
        while not lane.is_broken and not lane.is_pausing and lane.waiting:
            is_well_filled = lane.waiting_bytes >= _WELL_FILLED_BYTES
            if lane.under_way >= (_MOST_UNDER_WAY if is_well_filled else _USUALLY_UNDER_WAY):
                return
            if lane.under_way and _is_few(lane.waiting, len(lane.open)):
                return
            self._request(lane)

    def _is_unknown(self, name: str) -> bool:
        """Whether the job has to be asked for its number."""
        sender = self._senders.get(name)
        return sender is not None and sender.next is None

    def _pause(self, lane: _Lane) -> None:
        if not lane.is_pausing and lane.waiting:
            lane.is_pausing = True
            self.context.schedule(lane.pause_ms, _Again(lane))
            lane.pause_ms = min(2 * lane.pause_ms, _LONGEST_PAUSE_MS)

    def _request(self, lane: _Lane) -> None:
        taken: list[Item] = []
        if lane.is_full:
            first = lane.waiting[0]
            taken.append(question(first.sender) if first.count else lane.waiting.popleft())
        else:
            size = 0
            while lane.waiting and (not taken or size + len(lane.waiting[0].data) <= REQUEST_BYTES):
                item = lane.waiting.popleft()
                size += len(item.data)
                taken.append(item)
            lane.waiting_bytes -= size
        lane.open.extend(taken)
        lane.under_way += 1
        asked = tuple(taken)
        request = SendToInlet(self._job_id, self._inlet, lane.subtask, to_payload(packed(asked)))
        self.context.pipe_to_self(
            self._job_manager.ask(request, timeout_ms=math.inf),
            lambda answer: _Answered(lane, asked, answer),
            lambda error: _Failed(lane, error),
        )

    # -- answers

    def _answered(self, lane: _Lane, asked: tuple[Item, ...], answer: InletAnswer) -> None:
        last_numbers = answer.last_numbers
        done: Sequence[Item] = asked
        if not answer.is_ready:
            done = ()
        elif last_numbers:
            done = [item for item in asked if item.last <= last_numbers.get(item.sender, item.last)]
        self._learn(last_numbers)
        self.trouble = answer.trouble or (_FULL if answer.is_full else "")
        if done:
            self._last(lane, done, last_numbers)
        lane.is_full = answer.is_full
        if len(done) < len(asked):
            lane.is_broken = True
            if answer.has_ended:  # what is under way may still be answered
                why = "its job is being stopped"
                self.closed = InletClosed(f"inlet {self._inlet!r} takes no more records: {why}; {SEND_AGAIN}")
                self.refuse_all()
            elif answer.is_ready and not answer.is_full:
                self._refuse_gaps(lane, last_numbers)
        if answer.is_full:
            self._pause(lane)

    def _last(self, lane: _Lane, done: Sequence[Item], last_numbers: dict[str, int]) -> None:
        """What these have brought lasts. Mostly they are the first."""
        opened, count = lane.open, 0
        while count < len(done) and opened and opened[0] is done[count]:
            opened.popleft()
            count += 1
        if count < len(done):
            closed = set(done[count:])
            lane.open = deque(item for item in opened if item not in closed)
        if not all(item.is_probe for item in done):
            lane.pause_ms = _PAUSE_MS
        for item in done:
            if not item.count and not item.sent.number:
                item.sent.number = last_numbers[item.sender]
        settle([item.sent for item in done])

    def _learn(self, last_numbers: dict[str, int]) -> None:
        """Those who did not know which number is next do now. It may be higher than was known: a process of the same
        sender that was killed had records under way.
        """
        for name, last in last_numbers.items():
            sender = self._senders.get(name)
            if sender is None:  # a question of the inlet's own, for one that is gone since
                continue
            if sender.next is None:
                sender.next = last + 1
                held, sender.held = sender.held, deque()
                for item in held:
                    self._number(sender, item)
            else:
                sender.next = max(sender.next, last + 1)

    def _refuse_gaps(self, lane: _Lane, last_numbers: dict[str, int]) -> None:
        """A number is missing that nobody is going to send: what comes behind it cannot be taken."""
        for name, last in last_numbers.items():
            first = next((item for item in (*lane.open, *lane.waiting) if item.sender == name and item.count), None)
            if first is not None and first.number > last + 1:
                gap = NumberGap(self._inlet, name, first.number, last + 1)
                refused = [item for item in (*lane.open, *lane.waiting) if item.sender == name]
                lane.open = deque(item for item in lane.open if item.sender != name)
                lane.waiting = deque(item for item in lane.waiting if item.sender != name)
                lane.waiting_bytes = sum(len(item.data) for item in lane.waiting)
                self._senders[name].next = last + 1
                settle((item.sent for item in refused), gap)

    def _failed(self, error: BaseException) -> None:
        """Whether it is worth another try, or the end."""
        match error:
            case NotRunning(is_over=False) | AskTimeout() | RemoteActorError(type_name=NotRunning.__name__):
                self.trouble = _RESTARTING
            case _:
                why = error.message if isinstance(error, RemoteActorError) else error
                closed = InletClosed(f"inlet {self._inlet!r} takes no more records: {why}; {SEND_AGAIN}")
                closed.__cause__ = error
                self._close(closed)

    def _close(self, error: Exception) -> None:
        """All that is not known to last fails so, and all that comes."""
        self.closed = error
        for lane in self._lanes.values():
            self._refuse(lane, error)
        self.refuse_all()

    def _refuse(self, lane: _Lane, error: Exception) -> None:
        held = [sender.held for sender in self._senders.values() if sender.lane is lane]
        settle((item.sent for items in (lane.open, lane.waiting, *held) for item in items), error)
        for items in (lane.open, lane.waiting, *held):
            items.clear()


def _is_few(waiting: Sequence[Item], others: int) -> bool:
    """Whether these had better go with what those others send next."""
    return 0 < len(waiting) * _WORTH < others
