"""What flows between tasks and how it is dealt out: elements, records, keys, partitioners, outputs.

No sockets: `runtime/transport` carries it. The order of barriers is the business of `actors/barriers`.
"""
