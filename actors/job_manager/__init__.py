"""All jobs of a cluster: the JobManager actor, and the shells that carry its JobMasters' effects out."""
