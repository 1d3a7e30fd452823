"""State while it is used: the contract, the snapshot format, keyed state in dicts, operator lists.

Writes no files.
"""
