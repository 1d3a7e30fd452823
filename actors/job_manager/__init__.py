"""All jobs of a cluster: the JobManager actor, and the shells that carry its JobMasters' effects out.

What is decided about one job is not at home here: that is `actors/jobs` and `actors/checkpoints`.
"""
