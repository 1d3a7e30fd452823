"""A job in one process and thread, for debuggers and profilers."""
