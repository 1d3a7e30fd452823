"""Operators: the base classes that users subclass, and the built-in ones, one per file."""
