"""Nexmark: an auction house's events, 23 queries over them, and what each must answer.

`model` and the modules beside it make the events, `source` gives them to a job, `streams` reads them in a query,
`queries` are ours, `oracle` is the same in SQL for DuckDB, and `flink_sql` for Flink. docs/nexmark.md says what is
compared. The sides of the comparison are in benchmarks/sides and benchmarks/peers.
"""
