"""The harness: one operator without a cluster."""
