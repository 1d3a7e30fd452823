"""From a key to its hash, its key group and its slot, one by one or a column at a time. Keeps no values."""
