"""Trials: jobs of users, run in histories of their own, from assertions and from pytest."""
