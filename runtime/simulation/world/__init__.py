"""The simulated world: time, processes, network, disk, and the cluster that lives in it."""
