"""Savepoints as data: opened, read as tables, compared, verified, edited and made from nothing. No cluster, no JVM.

Not at home here: the meaning of a savepoint to a job (`state/checkpoints`, `actors/restore`), and the formats of
snapshots (`state/backends`, `state/columnar`). Flink: the State Processor API.
"""
