"""The data plane: channels between tasks, within a TaskManager and between them. See docs/architecture.md, Channels."""

from .data_plane import ZmqDataPlane
from .in_process import local_channel
from .stats import DataPlaneStats

__all__ = ["DataPlaneStats", "ZmqDataPlane", "local_channel"]
