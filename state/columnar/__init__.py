"""The same in NumPy columns by slot: columnar aggregations, and the state of compiled operators."""
