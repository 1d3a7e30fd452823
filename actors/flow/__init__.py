"""Elements that flow between tasks, and the way they are distributed: records, keys, partitioners, outputs.

No sockets: `runtime/transport` carries it. The order of barriers is the business of `actors/barriers`.
"""
