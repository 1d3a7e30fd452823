"""Change data capture of PostgreSQL: the snapshot of a table, then its changes, by logical replication."""
