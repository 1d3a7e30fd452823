"""Files as sources and sinks: formats, splits, and output that becomes visible when its checkpoint completes."""
