"""Spark DataFrames as sources: partitions that are read once and rewound, and scans read from their files."""
