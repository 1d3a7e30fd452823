"""The job of the service: orders come in, each customer's account is kept, and what became of each order goes out.

Clients send an order again when they do not know whether it has arrived. So orders have ids that clients choose, and
an account knows those of the last week: an order counts once, however often it comes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from understudy import Collector, KeyedOperator, MapState, StreamEnvironment, Ttl, ValueState

WEEK_MS = 7 * 24 * 60 * 60 * 1000

ORDER = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("customer", pa.string(), nullable=False),
        pa.field("cents", pa.int64(), nullable=False),
    ]
)
"""No column may be null: a record that has no key, or no amount, is refused when it is sent."""


class Accounts(KeyedOperator):
    """One per customer."""

    orders = ValueState(int, default=0)
    cents = ValueState(int, default=0)
    known = MapState(str, bool, ttl=Ttl(WEEK_MS))

    def process(self, order: Any, out: Collector) -> None:
        if self.known.contains(order["id"]):
            return
        self.known.put(order["id"], True)
        self.orders.update(self.orders.value() + 1)
        self.cents.update(self.cents.value() + order["cents"])
        receipt = {"order": order["id"], "customer": order["customer"], "number": self.orders.value()}
        out.collect(receipt | {"cents": order["cents"], "total": self.cents.value()})

    def on_receive(self, message: str) -> dict[str, int]:
        return {"orders": self.orders.value(), "cents": self.cents.value()}


def build(folder: str, checkpoint_interval_ms: int = 1000) -> StreamEnvironment:
    """Everything that outlasts the process is below `folder`."""
    env = StreamEnvironment(
        checkpoint_interval_ms=checkpoint_interval_ms, checkpoint_dir=f"{folder}/checkpoints", max_same_failures=None
    )
    orders = env.from_inlet("orders", schema=ORDER)
    orders.key_by("customer").process(Accounts, name="accounts").to_outlet("receipts")
    return env
