"""What came out of a benchmark's topic, and how long it took. Needs confluent-kafka only: peers' environments have it.

The time is from the first record of the output to the last one, as the broker stamps them when it appends them: some
peers give an output the time of its input. So start-up is left out on all sides; ours adds its last commit.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .side import answer

WAIT_S = 120
PARTITIONS = 4
Numbered = list[tuple[int, int, int]]


def messages(servers: str, topic: str) -> Iterator[Any]:
    """All committed ones that are there now."""
    settings = {"bootstrap.servers": servers, "group.id": "answers", "enable.partition.eof": True}
    consumer = Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    try:
        left = set(consumer.list_topics(topic, timeout=WAIT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            for message in (*consumer.consume(1, 10), *consumer.consume(10_000, 0)):
                if message.error() is None:
                    yield message
                else:
                    left.discard(message.partition())
    finally:
        consumer.close()


def read_numbered(servers: str, topic: str) -> Numbered:
    """(key, number within the key, index) of each record."""
    found = (json.loads(message.value()) for message in messages(servers, topic))
    return [(each["key"], each["number"], each["index"]) for each in found]


def problems_of_numbered(found: Numbered, rows: int, keys: int) -> list[str]:
    """What is wrong, and nothing where each record has come out once, and each key's numbers are 1 to n."""
    problems = []
    indexes = Counter(index for _, _, index in found)
    lost = [index for index in range(rows) if index not in indexes]
    doubled = [index for index, times in indexes.items() if times > 1]
    if lost or doubled:
        problems.append(
            f"{len(lost)} of {rows} records are lost (as {lost[:5]}), {len(doubled)} doubled ({doubled[:5]})"
        )
    wanted = Counter((index % keys, index // keys + 1) for index in range(rows))
    if wrong := Counter((key, number) for key, number, _ in found) - wanted:
        problems.append(f"{len(wrong)} numbers of keys are wrong, as {list(wrong)[:5]}")
    return problems


def timed_answer(options: dict[str, Any], packages: Sequence[str], committed_s: float = 0.0, **more: Any) -> None:
    """In the side's own process, when it has ended: say how long it took, and how many came out of each key.

    `committed_s`: when all of it could be read, where that is later than the last record.
    """
    deadline = time.monotonic() + WAIT_S
    while True:  # what was committed last may take the brokers a moment to show
        moments: list[int] = []
        counts: Counter[int] = Counter()
        highest: dict[int, int] = {}
        for message in messages(options["servers"], options["answers"]):
            record = json.loads(message.value())
            moments.append(message.timestamp()[1])
            counts[record["key"]] += 1
            highest[record["key"]] = max(highest.get(record["key"], 0), record["number"])
        if len(moments) >= options["rows"] or time.monotonic() > deadline:
            break
    began_ms, ended_ms = min(moments, default=0), max([int(committed_s * 1000), *moments])
    is_numbered = all(counts[key] == highest[key] for key in counts)
    seconds = max(ended_ms - began_ms, 1) / 1000
    said = {"outputs": sum(counts.values()), "keys": len(counts), "is_numbered": is_numbered}
    answer(seconds, packages, began_s=began_ms / 1000, ended_s=ended_ms / 1000, **said, **more)


def fresh_topic(servers: str, partitions: int) -> str:
    """For the output of one run."""
    name = f"answers-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": servers})
    stamped = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(name, partitions, 1, config=stamped)])[name].result(WAIT_S)
    return name
