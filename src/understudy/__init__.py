"""Understudy: a fault-tolerant, stateful stream processing runtime of asyncio actors on Spark."""

__version__ = "0.1.0"
