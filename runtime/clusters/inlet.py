"""Inlet: the way into a running job: `await job.inlet("orders").send(record)`. The job has it from `env.from_inlet`.

    inlet = job.inlet("orders")
    await inlet.send({"id": 7})              inlet.send({"id": 7}).result(timeout=5)

An Inlet packs records on its user's thread, and the InletSender of its process, which all senders of an inlet share,
brings them there. May be used from any thread and event loop.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ...actors.context import Ref
from ...actors.flow.records import conform
from ...actors.operators.operator import Operator
from ...messages import JobGraph, JobId, RecordTypes, shown
from ...messages.known_names import there_are
from ..api.checks import text
from ..api.errors import InvalidSetting
from ..connectors import InletSource, columns_to_bytes, subtask_of
from ..connectors.inlet.sender_numbers import MADE_UP
from ..system.home import Home
from .inlet_items import Item
from .inlet_sender import InletSender, Wake
from .job_client import JobClient
from .job_errors import InletClosed, UnknownInlet
from .record_packer import MAX_RECORD_BYTES, RecordPacker, complete_batch, too_large
from .sent import Promise, Sent, settle

PART_ROWS = 4096
PART_BYTES = 512 * 1024
"""`send_many` and `send_batch` divide what is more."""


class InletWay:
    """One inlet of a job, as one process reaches it: made once, and shared by all its senders here."""

    def __init__(
        self,
        client: JobClient,
        job_id: JobId,
        name: str,
        source: InletSource,
        size: tuple[int, int],
        types: RecordTypes | None = None,
    ) -> None:
        """`size`: parallelism and max_parallelism of the source. `types`: the script's classes that the job has."""
        self.name = name
        self.source = source
        self.size = size
        self.types = types
        self.promise: Promise | None = client.waits_by
        self._inbox: deque[tuple[Item, int, bool]] = deque()
        self._gone: deque[str] = deque()
        self._sender = InletSender(client.job_manager, job_id, name, self._inbox, self._gone)
        self._ref: Ref = client.start(self._sender)
        self._home = Home()

    @property
    def trouble(self) -> str:
        return self._sender.trouble

    def gone(self, sender: str) -> None:
        """Nobody can send anything by this name any more, and nothing of it is under way. It wakes nobody, as it may be
        called anywhere, by whoever lets go of an inlet.
        """
        self._gone.append(sender)

    def put(self, items: list[tuple[Item, int, bool]]) -> None:
        """Items, with the subtask of their sender and whether its name is new."""
        if self._home.is_elsewhere:
            closed = InletClosed(f"inlet {self.name!r} takes no records of this process: {self._home.why}")
            settle((item.sent for item, _, _ in items), closed)
            return
        self._inbox.extend(items)
        if self._sender.closed is not None:
            self._sender.refuse_all()
        elif not self._sender.is_woken:
            try:
                self._sender.is_woken = True
                self._ref.tell(Wake())
            except BaseException:  # as by Ctrl-C in the middle: the next one is to wake it
                self._sender.is_woken = False
                raise


def way_into(
    client: JobClient,
    graph: JobGraph,
    operators: Mapping[str, Operator],
    name: str,
    types: RecordTypes | None = None,
) -> InletWay:
    """Raises UnknownInlet."""
    source = operators.get(name)
    if not isinstance(source, InletSource):
        inlets = [each for each, operator in operators.items() if isinstance(operator, InletSource)]
        raise UnknownInlet(f"job {graph.name!r} has no inlet {name!r}{there_are(name, inlets)}")
    vertex = next(each for each in graph.vertices if each.operators[0].name == name)
    return InletWay(client, graph.job_id, name, source, (vertex.parallelism, vertex.max_parallelism), types)


class Inlet:
    """One sender's way into an inlet. Its records are numbered from 1 on and come out in this order, each once."""

    _is_new = False

    def __init__(self, way: InletWay, sender: str | None) -> None:
        self._way = way
        self.sender = f"{MADE_UP}{uuid.uuid4().hex}" if sender is None else _sender_name(sender)
        """The name that its numbers belong to."""
        self._is_new = sender is None
        self._subtask = subtask_of(self.sender, *way.size)
        self._pack: Callable[[Any], bytes] = RecordPacker(way.source.schema, way.types).pack

    def __del__(self) -> None:
        """Each Sent holds its inlet, so nothing is under way. A name that was made up is of no use to anybody else."""
        if self._is_new:
            self._way.gone(self.sender)

    def __repr__(self) -> str:
        return f"<inlet {self._way.name!r}, sender {self.sender!r}>"

    @property
    def trouble(self) -> str:
        """Why records do not last at the moment, such as a log that cannot be written; empty: all is well, or it is not
        known.
        """
        return self._way.trouble

    def send(self, record: Any, *, number: int | None = None, timeout: float | None = None) -> Sent:
        """Send one record. The Sent is done when the record lasts: await it, or call its `result()`; it gives the
        record's number.

        `number`: the one to give it, at most one more than the last; None: the next. One that is there already counts
        once, whoever sent it first: so a sender with a name may send again what it does not know the answer of.
        `timeout`: seconds after which the wait fails with TimeoutError; the record is under way still.

        Raises RecordMismatch for a record that does not fit the schema, and UnsupportedValue for one that cannot be
        sent, or whose class was defined after the submit. The wait fails with InletClosed once the job takes no more,
        and with NumberGap if `number` leaves one out.
        """
        if number is not None:
            return self._put([(1, False, self._pack(record))], number, timeout)
        sent = Sent(self, timeout, self._way.promise)
        self._way.put([(Item(self.sender, sent, 1, False, self._pack(record)), self._subtask, self._is_new)])
        return sent

    def send_many(self, records: Iterable[Any], *, number: int | None = None, timeout: float | None = None) -> Sent:
        """The same of several records, in this order; done when all last. `number` is that of the first. The job may
        have taken the first of them when it fails.
        """
        if isinstance(records, Mapping | str | bytes | pa.RecordBatch | pa.Table):
            way = "send_batch" if isinstance(records, pa.RecordBatch | pa.Table) else "send, for one record"
            raise InvalidSetting(f"send_many: wanted a list of records, found a {type(records).__name__}: call {way}")
        records = records if isinstance(records, list) else list(records)
        if self._way.source.schema is not None:
            return self.send_batch(complete_batch(records, self._way.source.schema), number=number, timeout=timeout)
        return self._put(list(_parts(map(self._pack, records))), number, timeout)

    def send_batch(
        self, batch: pa.RecordBatch | pa.Table, *, number: int | None = None, timeout: float | None = None
    ) -> Sent:
        """The same of the rows of an Arrow batch or table."""
        if isinstance(batch, pa.Table):
            batches = batch.to_batches()
        elif isinstance(batch, pa.RecordBatch):
            batches = [batch]
        else:
            raise InvalidSetting(f"send_batch: wanted a pa.RecordBatch or a pa.Table, found {shown(batch)}")
        schema = self._way.source.schema
        parts = [
            (rows.num_rows, True, _fitting(columns_to_bytes(rows)))
            for each in batches
            for rows in _slices(each if schema is None else conform(each, schema))
        ]
        return self._put(parts, number, timeout)

    def last_number(self, *, timeout: float | None = None) -> Sent:
        """The number of this sender's last record that lasts, once all sent before is settled; 0 if there is none."""
        sent = self._sent(timeout)
        self._way.put([(Item(self.sender, sent), self._subtask, self._is_new)])
        return sent

    def _put(self, parts: list[tuple[int, bool, bytes]], number: int | None, timeout: float | None) -> Sent:
        if number is not None and (type(number) is not int or number < 1):
            raise InvalidSetting(f"number: wanted a whole number from 1 on, or None, found {shown(number)}")
        if not parts:
            return self.last_number(timeout=timeout)
        items, first = [], number or 0
        for place, (count, columns, data) in enumerate(parts, start=1):
            sent = self._sent(timeout) if place == len(parts) else Sent(None, None, None)  # nobody waits for the others
            items.append(Item(self.sender, sent, count, columns, data, first))
            first = first and first + count
        self._way.put([(item, self._subtask, self._is_new) for item in items])
        return items[-1].sent  # all before it last when it does

    def _sent(self, timeout: float | None) -> Sent:
        return Sent(self, timeout, self._way.promise)


def _sender_name(name: str) -> str:
    if not text("sender", name) or name.startswith(MADE_UP):
        raise InvalidSetting(
            f"sender: wanted a name that does not begin with {MADE_UP!r}, and is not empty, found {name!r}"
        )
    return name


def _parts(packed: Iterable[bytes]) -> Iterable[tuple[int, bool, bytes]]:
    part: list[bytes] = []
    size = 0
    for each in packed:
        if part and (size + len(each) > PART_BYTES or len(part) == PART_ROWS):
            yield len(part), False, b"".join(part)
            part, size = [], 0
        part.append(each)
        size += len(each)
    if part:
        yield len(part), False, b"".join(part)


def _slices(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    """Of about PART_BYTES."""
    if not batch.num_rows:
        return
    rows = max(1, min(batch.num_rows, 16 * PART_ROWS, PART_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _fitting(data: bytes) -> bytes:
    if len(data) > MAX_RECORD_BYTES:
        raise too_large(len(data))
    return data
