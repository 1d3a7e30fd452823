"""AsyncSettings: how the coroutines of one operator run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ...messages.known_names import known_names_with, meant
from ..flow.key_selector import field_values
from ..setting_limits import limits_in_words, most_of
from .retry import Retry

OnError = Literal["fail", "errors"]

HELD_PER_CALL: Final = 4
"""A keyed operator holds this many records for each that may run: those that wait behind their key take no turn of
other keys.
"""


SETTINGS_ELSEWHERE: Final = {"capacity": "max_in_flight"}
"""Settings of Flink's AsyncDataStream, and what they are called here."""


@known_names_with({name: f"write {here}=..." for name, here in SETTINGS_ELSEWHERE.items()})
@dataclass(frozen=True, slots=True)
class AsyncSettings:
    """How `async def process`, or an async function of `map`, `filter` or `flat_map`, runs in each subtask.

    As a class attribute `async_settings` of an operator, or for one use with `stream.map(fetch).async_settings(...)`.
    Raises ValueError for a setting that cannot be, and TypeError for a name that is none of them.
    """

    max_in_flight: int = 1000
    """At most this many coroutines run at a time. An operator without a key holds no more records than that, a keyed
    one four times as many, for the records of one key wait for each other. Then the operator takes no input.
    """
    max_in_flight_bytes: int = 64 * 1024 * 1024
    """The records it holds take about this much memory at most."""
    ordered: bool | None = None
    """True: results leave in the order of the input. False: as they come, though none overtakes a watermark; records
    of one key keep their order in any case. None: True without a key, False with one.
    """
    timeout_ms: int | None = None
    """Each try is cancelled after this time, and has failed with CallTimedOut. None: it may take any time."""
    total_timeout_ms: int | None = None
    """All tries of a record, with what lies between them, end after this time."""
    retry: Retry | None = None
    """None: a record is tried once."""
    rate_per_second: float | None = None
    """At most this many tries begin in a second, over all subtasks of the operator. After an answer that says 429, or
    503, fewer do for a while.
    """
    on_error: OnError = "fail"
    """What becomes of a record whose last try has failed: "fail" fails the task, which restarts by the job's strategy;
    "errors" puts it, with the cause, on `stream.errors`.
    """
    default: Any = None
    """Emitted in place of the result of a record whose last try has failed, where it is not None."""
    idempotency_key: str | Callable[[Any], object] | None = None
    """A column, or a function of the record, that gives `self.idempotency_key`; for records that have an id of their
    own. None: one is made for each record, and kept in the checkpoints.
    """
    batch_size: int = 100
    """`async def process_batch` gets at most this many records."""
    batch_wait_ms: int = 10
    """It is called with fewer when the first of them has waited for this time."""
    close_timeout_ms: int = 5000
    """When the task ends, its coroutines are cancelled, and waited for no longer than this."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"AsyncSettings: {name}: wanted a whole number of at least {least}, found {value!r}")
            if value is not None and value > most_of(name):
                limits = limits_in_words(name, least)
                raise ValueError(f"AsyncSettings: {name}: wanted a whole number {limits}, found {value!r:.80}")
        if self.timeout_ms and self.total_timeout_ms and self.total_timeout_ms < self.timeout_ms:
            raise ValueError(
                f"AsyncSettings: total_timeout_ms: wanted at least timeout_ms ({self.timeout_ms}), as all tries of a "
                f"record take no less than one of them, found {self.total_timeout_ms}"
            )
        if self.ordered not in (True, False, None):
            raise ValueError(f"AsyncSettings: ordered: wanted True, False or None, found {self.ordered!r}")
        if self.on_error not in ("fail", "errors"):
            raise ValueError(f'AsyncSettings: on_error: wanted "fail" or "errors", found {self.on_error!r}')
        if self.retry is not None and not isinstance(self.retry, Retry):
            raise ValueError(f"AsyncSettings: retry: wanted a Retry, such as Retry(attempts=5), found {self.retry!r}")
        rate = self.rate_per_second
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1e9):
            raise ValueError(f"AsyncSettings: rate_per_second: wanted a number above 0, found {rate!r}")
        if self.idempotency_key is not None and not (
            isinstance(self.idempotency_key, str) or callable(self.idempotency_key)
        ):
            raise ValueError(
                "AsyncSettings: idempotency_key: wanted the name of a column or a function of the record, found "
                f"{self.idempotency_key!r}"
            )

    def limit_ms(self, spent_ms: float) -> float | None:
        """How long a try may take that begins this long after the first one."""
        if self.total_timeout_ms is None:
            return self.timeout_ms
        left_ms = max(self.total_timeout_ms - spent_ms, 1)
        return left_ms if self.timeout_ms is None else min(left_ms, self.timeout_ms)

    def identity_of(self, record: Any) -> str:
        """The idempotency key that a record gives. Raises whatever a function of the user's raises, or NoSuchColumn."""
        wanted = self.idempotency_key
        if callable(wanted):
            return str(wanted(record))
        return str(field_values([record], str(wanted), "the idempotency key")[0])

    def with_changes(self, **changes: Any) -> AsyncSettings:
        """The same with some of them changed. Raises ValueError for a name that is none of them."""
        unknown = [name for name in changes if name not in self.__dataclass_fields__]
        if unknown:
            known = ", ".join(self.__dataclass_fields__)
            instead = SETTINGS_ELSEWHERE.get(unknown[0])
            hint = f"; write {instead}=..." if instead else meant(unknown[0], self.__dataclass_fields__)
            raise ValueError(f"async_settings: found {', '.join(unknown)}; wanted some of {known}{hint}")
        return replace(self, **changes)


_LEAST: Final = {
    "max_in_flight": 1,
    "max_in_flight_bytes": 1,
    "timeout_ms": 1,
    "total_timeout_ms": 1,
    "batch_size": 1,
    "batch_wait_ms": 0,
    "close_timeout_ms": 0,
}
