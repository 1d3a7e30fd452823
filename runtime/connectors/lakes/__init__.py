"""Tables of lakes: sinks of writers and one committer, sources of a version and of those that follow. See lake_sink."""
