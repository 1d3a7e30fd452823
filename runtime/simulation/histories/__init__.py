"""Histories: standard jobs and faults drawn from a seed, run, judged, printed and shrunk."""
