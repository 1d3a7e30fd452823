"""Keyed state in RocksDB: state larger than memory, whose snapshots share their unchanged files.

Not at home here: what is true of any backend whose snapshots share files (`backends`), and local copies
(`checkpoints/local_copies`). Only `store` knows rocksdict, which is an optional package.
"""
