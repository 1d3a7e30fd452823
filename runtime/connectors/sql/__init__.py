"""SQL databases: tables read by key, written by ledger or upsert, looked up; the changes of PostgreSQL's tables."""
