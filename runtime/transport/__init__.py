"""The data plane: channels between tasks, within a TaskManager and between them. Control messages go elsewhere.

The consumer's TaskManager connects to the producer's data endpoint (one connection per ordered pair), opens each
channel with a window in bytes, and returns credit as its task polls. The producer's end queues elements and sends
batches only against credit. Frames of a channel are numbered from 0 in both directions: a gap or a duplicate breaks the
channel, which fails the attempt on either side. A lost connection breaks all channels on it. A consumer that opens a
channel before its producer is deployed is kept, up to a bound; beyond it the oldest is refused, and its attempt fails.

Credit is counted in bytes (limits.py). A batch costs its payload and 1 KiB; control elements cost nothing. A task's
channels share 1 MiB, each has at least 16 KiB: that much stands in front of a barrier under back-pressure. The last
batch may take more than is left of a window, so a batch of any size passes a window of any size, and a consumer holds
less than a window and one batch; a batch that comes when the window is used up breaks the channel. The window grows
until four of the channel's batches fit, up to 8 MiB: with only one under way, one side would rest while the other
works. Credit is returned when it comes to half of the window, so that small batches do not cost a frame each.

Small batches leave together: `actors/flow/output_buffer.py` keeps them until they are worth sending.
"""

from .data_plane import ZmqDataPlane
from .stats import DataPlaneStats

__all__ = ["DataPlaneStats", "ZmqDataPlane"]
