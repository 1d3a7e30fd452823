"""Inlets: the source that records are sent into while its job runs, and its log.

Who sends them is not at home here: see `runtime/clusters/inlet.py`.
"""
