"""Redis: streams as a source, and streams, lists and hashes as sinks. Redis 7 or newer; client: redis-py."""
