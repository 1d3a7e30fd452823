"""Windows over streams. At home: assigners, triggers, evictors, sessions that merge, and the operators that run them.
Not here: event time itself and timers (operators), joins.
"""
