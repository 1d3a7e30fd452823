"""The simulator: a whole cluster in one thread, on virtual time, with faults. See docs/simulation.md.

Users find its names in `understudy.testing`.
"""
