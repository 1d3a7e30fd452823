"""The figures of a vertex, made of those of its subtasks: sums where they add up, else the one that matters most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_GREATEST = frozenset(
    {
        "busyTimeMsPerSecond",
        "backPressuredTimeMsPerSecond",
        "inPoolUsage",
        "outPoolUsage",
        "checkpointAlignmentTime",
        "watermarkLag",
    }
)
"""One slow subtask holds up all."""
_LEAST = frozenset({"idleTimeMsPerSecond", "currentInputWatermark", "currentOutputWatermark"})
_SUMMED = frozenset({"numLateRecordsDropped", "recordsInFlight", "stateEntries", "stateSize"})
_USER_SUMMED = frozenset({"counter", "meter"})


def of_subtasks(subtasks: Sequence[Mapping[str, float]], kinds: Mapping[str, str]) -> dict[str, float]:
    """`kinds`: of metrics that user code has made. Its gauges and histograms have no sum: subtasks have them."""
    names = dict.fromkeys(name for values in subtasks for name in values)
    found: dict[str, float] = {}
    for name in names:
        all_values = [values[name] for values in subtasks if name in values]
        if name in _GREATEST:
            found[name] = max(all_values)
        elif name in _LEAST:
            found[name] = min(all_values)
        elif _adds_up(name, kinds):
            found[name] = sum(all_values)
    records = [values["numRecordsIn"] for values in subtasks if "numRecordsIn" in values]
    if sum(records):
        found["dataSkewPercentage"] = _skew(records)
    return found


def _adds_up(name: str, kinds: Mapping[str, str]) -> bool:
    if name in kinds:
        return kinds[name] in _USER_SUMMED
    return name.startswith(("num", "accumulate")) or name.rpartition(".")[2] in _SUMMED


def _skew(records: Sequence[float]) -> float:
    """How unevenly records are dealt out: the mean distance from their mean, in percent of it. Flink's data skew."""
    mean = sum(records) / len(records)
    return 100 * sum(abs(each - mean) for each in records) / len(records) / mean
