"""Turns a task's input channels into one stream with checkpoints in it. Takes no snapshots and sends nothing."""
