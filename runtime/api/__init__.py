"""How programs are written: the environment, streams, and what is wrong with one. `translate` is for clusters."""
