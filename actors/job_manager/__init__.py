"""All jobs of a cluster: the JobManager actor, and the shells that carry its JobMasters' effects out.

Decisions about one job are not at home here: see `actors/jobs` and `actors/checkpoints`.
"""
