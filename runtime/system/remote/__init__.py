"""Actors of other processes: addresses, envelopes, keys, and the control connections over ZeroMQ.

Records do not pass here: `runtime/transport` is the data plane.
"""
