"""The kit: contracts that a connector of anybody's passes, against the real system that it connects to.

At home here: recording the connector's calls to the outside, faults at each of them, the turns of a source's
own threads, and stories of what went wrong.
Not at home here: faults of clusters (`trials`, `chaos`); what each connector promises.
"""
