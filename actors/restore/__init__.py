"""What a job starts or restarts from: reading it, whether it fits the program, who gets what of it.

When a job restarts is decided in `actors/jobs`. How state is cut for another parallelism: `state/checkpoints`.
"""
