"""What outlives a task: snapshots, completed checkpoints, savepoints, who needs which file, who restores what.

Nothing here decides when a checkpoint is taken: that is `actors/checkpoints`.
"""
