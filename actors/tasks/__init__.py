"""The TaskManager's side: one attempt of one subtask, its parts, and the actor that hosts attempts.

Decisions about the job are not at home here: nothing of `checkpoints`, `restore`, `jobs` or `job_manager` is imported.
"""
