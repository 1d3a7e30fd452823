"""Columns of values as numbers and as bytes: packed, narrowed, and framed as batches.

Knows no state, no key and no file.
"""
