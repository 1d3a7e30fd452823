"""Figures of a cluster on their way out: stacks and figures of processes, Prometheus, OpenTelemetry, JSON logs."""
