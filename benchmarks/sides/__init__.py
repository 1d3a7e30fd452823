"""Our own sides of the comparisons: each module is run as a process of its own, as the peers are."""
