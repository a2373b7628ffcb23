"""What one broker knows of the load of another: localInfo and remoteInfo of the thesis.

Paper    Cheung, thesis 4.1.3, equations (4.1) and (4.2); 4.2.2, equation (4.9).
Words    ir -> input_per_s; n -> subscriptions; d, m, b -> matching_delay_s, matching;
         ou, ot -> output_used_bytes_s, output_total_bytes_s; Ir, Or -> input_utilisation,
         output_utilisation.
Departs  1. The matching delay is the value of the line d(n) = m n + b, also for the present n, so
            that a value before a move and the estimate after it differ by the move only.
         2. Memory is here as a utilisation: the thesis limits it but sends no figure for it (E40).
         3. A broker without a limit of its output has a total of infinity, and so Or = 0.
Tested   tests/policies/offload/test_estimates.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf

from godwit.profile.matching_delay import MatchingDelay


class OffloadAction(Enum):
    """Which of the three offload algorithms is to run."""

    INPUT = "input"
    MATCH = "match"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """The load of a broker, measured or estimated."""

    broker: str
    input_per_s: float
    """Publications per second that arrive."""

    subscriptions: int
    """Entries of the matching engine."""

    matching: MatchingDelay
    output_used_bytes_s: float
    output_total_bytes_s: float
    """Infinity if it is not limited."""

    memory_utilisation: float = 0.0
    """Used memory over available memory; 0 where it is not limited."""

    memory_per_subscription: float = 0.0
    """How much of the available memory one subscription takes; 0 if that is not known."""

    @property
    def matching_delay_s(self) -> float:
        """The thesis's d."""
        return self.matching.delay_s(self.subscriptions)

    @property
    def input_utilisation(self) -> float:
        """The thesis's Ir; above 1 the input queue grows."""
        return self.input_per_s * self.matching_delay_s

    @property
    def cpu_utilisation(self) -> float:
        """Equal to Ir as long as the broker keeps up (thesis 4.2.2)."""
        return min(self.input_utilisation, 1.0)

    @property
    def output_utilisation(self) -> float:
        """The thesis's Or; above 1 the output queues grow."""
        if self.output_total_bytes_s > 0:
            return self.output_used_bytes_s / self.output_total_bytes_s
        return inf if self.output_used_bytes_s > 0 else 0.0


def load_account(info: BrokerInfo) -> dict[str, float]:
    """A load as values that JSON has, for operators."""
    return {
        "input": info.input_utilisation,
        "match_s": info.matching_delay_s,
        "output": info.output_utilisation,
        "memory": info.memory_utilisation,
        "publications_per_s": info.input_per_s,
        "subscriptions": info.subscriptions,
    }
