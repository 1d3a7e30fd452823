"""What a harness says where time passes and timers wait for a watermark: whoever expects that they fire by the clock
finds an empty output.
"""

from __future__ import annotations

from ....actors.flow.elements import NO_WATERMARK
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.tasks.operator_chain import OperatorChain
from ....messages.counted import counted
from ....state import declared_states


def waiting_timers(chain: OperatorChain) -> str:
    """Of operators that no watermark has come to. Empty where none wait, and where something else goes by the clock:
    then there is a reason to let time pass.
    """
    is_in_flight = chain.calls is not None and chain.calls.in_flight > 0
    if is_in_flight or any(map(_goes_by_the_clock, chain.operators)):
        return ""
    keyed = [each for each in chain.operators if isinstance(each, KeyedOperator) and each.watermark == NO_WATERMARK]
    waiting = {each.context.name: timers for each in keyed if (timers := len(each.timers.queues.event))}
    if not waiting:
        return ""
    timers = sum(waiting.values())
    return (
        f"harness.advance moves processing time alone, and in operator {' and '.join(map(repr, waiting))} "
        f"{counted(timers, 'timer')} of event time {'waits' if timers == 1 else 'wait'} for a watermark: write "
        "harness.watermark(ms) to let event time come to ms"
    )


def _goes_by_the_clock(operator: Operator) -> bool:
    """By timers, by state that expires, or in `on_idle`."""
    if isinstance(operator, KeyedOperator) and operator.timers.queues.processing:
        return True
    ttls = (getattr(each, "ttl", None) for each in declared_states(type(operator)).values())
    has_ttl = any(ttl is not None and ttl.clock == "processing" for ttl in ttls)
    return has_ttl or type(operator).on_idle is not Operator.on_idle
