"""The JobManager's side of checkpoints: who wants one, may it start, who has acknowledged, what becomes of it.

Snapshots themselves are taken in `tasks`, and stored in `state/checkpoints`.
"""
