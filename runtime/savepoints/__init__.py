"""Savepoints as data: opened, read as tables, compared, verified, edited and made from nothing. No cluster, no JVM.

What a savepoint means to a job is at home in `state/checkpoints` and `actors/restore`; the formats of snapshots are at
home in `state/backends` and `state/columnar`. Flink: the State Processor API.
"""
