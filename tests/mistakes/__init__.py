"""The twenty mistakes of a first hour, made on purpose: when each is found, and what its author reads.

`python -m tests.mistakes` prints the table; test_mistakes.py holds it against what is wanted.
"""
