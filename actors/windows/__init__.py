"""Windows over streams. At home: assigners, triggers, evictors, sessions that merge, the operators that run them, record
by record. Not here: event time itself and timers (operators), joins.
"""
