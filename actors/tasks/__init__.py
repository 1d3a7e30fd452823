"""The TaskManager's side: one attempt of one subtask, its parts, and the actor that hosts attempts.

What a job decides is not at home here, and nothing of `checkpoints`, `restore`, `jobs` or `job_manager` is imported.
"""
