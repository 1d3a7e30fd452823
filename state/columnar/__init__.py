"""State in NumPy columns by slot: columnar aggregations, state and timers of compiled operators.

The format of its snapshots is that of `state/backends`. No machine code: that is `actors/compiled`.
"""
