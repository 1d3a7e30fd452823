"""Counts words, for ever or for a number of lines: a job to run, to stop with a savepoint, and to continue from it.

    understudy run examples/word_count.py:build -- 1000

prints how often each word has come. Without the number of lines it goes on until it is stopped:

    understudy run examples/word_count.py:build
    understudy stop word_count
    understudy run examples/word_count.py:build --from-savepoint PATH

Checkpoints and savepoints go to the folder `word_count_checkpoints`.
"""

from __future__ import annotations

from understudy import Collector, KeyedOperator, StreamEnvironment, ValueState

PLAY = (
    "the play goes on",
    "the actor falls and the understudy goes on",
    "the play is the thing",
)


class CountWords(KeyedOperator):
    """How often each word has come so far."""

    count = ValueState(int, default=0)

    def process(self, word: str, out: Collector) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((word, self.count.value()))


def build(lines: str = "", records_per_second: str = "1000") -> StreamEnvironment:
    """`lines`: how many, without end when it is empty."""
    env = StreamEnvironment(checkpoint_interval_ms=500, checkpoint_dir="word_count_checkpoints")
    text = env.generate(
        lambda index: PLAY[index % len(PLAY)],
        int(lines) if lines else None,
        records_per_second=float(records_per_second),
        name="lines",
    )
    words = text.flat_map(str.split, name="words")
    words.key_by(lambda word: word).process(CountWords, name="count").print()
    return env
