"""One job from submission to its end: the JobMaster, and the books that it joins.

Value machines: events in, effects out. Files, processes and clients are reached through effects, which
`actors/job_manager` carries out.
"""
