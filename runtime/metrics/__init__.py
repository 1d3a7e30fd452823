"""Figures of a cluster on their way out: stacks and figures of processes, Prometheus, OpenTelemetry, JSON logs."""

from .json_lines import JsonLines
from .process_figures import ProcessFigures
from .slot_stacks import SlotStacks

__all__ = ["JsonLines", "ProcessFigures", "SlotStacks"]
