"""Benchmarks: `python -m benchmarks NAME`. Each checks its answer; see README.md."""
