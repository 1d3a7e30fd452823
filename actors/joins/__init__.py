"""Joins of two streams, and what is kept of one by key: regular, interval, temporal, lookup and window joins,
`deduplicate` and `top_n`, each over columns and per record. Not here: windows (windows), the rows that joins keep
(state/columnar), how a program writes them (runtime/api).
"""
