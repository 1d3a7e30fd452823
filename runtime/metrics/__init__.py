"""Figures of a cluster on their way out: stacks and figures of processes, Prometheus, OpenTelemetry, JSON logs."""

from .process_figures import ProcessFigures
from .slot_stacks import SlotStacks

__all__ = ["ProcessFigures", "SlotStacks"]
