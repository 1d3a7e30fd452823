"""Async calls: coroutines of operators, one for each record: in flight, in order, in snapshots, asked again."""
