"""A stream is built while other threads of the program set attributes of its classes, as `pickle` does once of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy import Collector, KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.runtime.api.translation import translate

from ...meanwhile import at_each_collection


@dataclass
class Order:
    customer: str
    cents: int


class Total(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, order: Order, out: Collector) -> None:
        self.total.update(self.total.value() + order.cents)
        out.collect((self.key, self.total.value()))


class Enriched(Operator):
    def process(self, order: Order, out: Collector) -> None:
        out.collect(order)


def _built(folder: str) -> Any:
    env = StreamEnvironment(checkpoint_dir=folder)
    orders = env.from_collection([Order("ann", 1)]).process(Enriched())
    orders.key_by(lambda order: order.customer).process(Total()).collect(name="totals")
    return translate(env, name="orders", default_parallelism=2, task_managers=1, work_dir=folder, slots=2)


def test_attributes_that_come_to_its_classes_meanwhile_are_no_error(tmp_path: Any) -> None:
    folder = str(tmp_path)
    _built(folder)

    def lazily(name: str) -> None:
        for each in (Order, Total, Enriched):
            setattr(each, name, None)

    with at_each_collection(lazily):
        made = _built(folder)
    assert [vertex.name for vertex in made.graph.vertices]
