"""What user code prints and logs in TaskManagers, on its way to the user's process; the watch on steps that block."""

from .delivery import OutputDelivery
from .log_levels import LogLevels
from .log_relay import relayed_logs
from .outbox import RelayOutbox
from .pipes import LastLine, OutputPipes
from .print_relay import relayed_prints
from .slow_coroutines import SlowCoroutines
from .slow_steps import SlowSteps

__all__ = [
    "LastLine",
    "LogLevels",
    "OutputDelivery",
    "OutputPipes",
    "RelayOutbox",
    "SlowCoroutines",
    "SlowSteps",
    "relayed_logs",
    "relayed_prints",
]
