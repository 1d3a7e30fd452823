"""What flows between tasks and how it is dealt out. No sockets: `runtime/transport` carries it.

No barriers' order: `barriers`.
"""
