"""The resources of a simulated broker: CPU, bandwidth, memory (thesis 7.1 and 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

from godwit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResources:
    cpu_speed: float = 1000.0
    """Relative; MHz in the thesis.  Twice the speed halves the matching delay."""

    matching_work_base: float = 0.1
    """Seconds a CPU of speed 1 needs to match a message against no subscription."""

    matching_work_per_subscription: float = 0.001
    """Additional seconds a CPU of speed 1 needs for each subscription in the tables."""

    output_bandwidth_bytes_s: float = 12_500_000.0
    """Shared by all output queues of the broker; 100 Mbit/s by default."""

    memory_bytes: float = inf
    """For the matching engine and the queues.  A publication that finds it full is dropped and
    counted; the copies of one that was accepted may exceed it."""

    engine_bytes_base: float = 0.0
    """Memory of the matching engine without subscriptions."""

    engine_bytes_per_subscription: float = 1_400.0
    """As measured for a table entry of our brokers; the thesis gives no number."""

    def __post_init__(self) -> None:
        if not (self.cpu_speed > 0 and self.output_bandwidth_bytes_s > 0):
            raise UsageError("cpu_speed and output_bandwidth_bytes_s must be above 0")
        if not self.memory_bytes >= 0:
            raise UsageError("memory_bytes must not be below 0")

    def engine_bytes(self, subscriptions: int) -> float:
        """Memory of the engine: linear in the number of subscriptions, as in the thesis."""
        return self.engine_bytes_base + self.engine_bytes_per_subscription * subscriptions

    def matching_delay_s(self, subscriptions: int) -> float:
        """Linear in the number of subscriptions, as in the thesis."""
        work = self.matching_work_base + self.matching_work_per_subscription * subscriptions
        return work / self.cpu_speed


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """The delay of a link, drawn for each message.  Links are FIFO whatever is drawn."""

    latency_s_min: float = 0.0005
    """No message is faster."""

    latency_s_mean: float = 0.0005
    """Latency is `latency_s_min` plus an exponential tail with the remaining mean."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.latency_s_min <= self.latency_s_mean:
            raise UsageError("latency_s_min must be from 0 to latency_s_mean")

    def draw_s(self, random: Random) -> float:
        """The latency of one message on an idle link without faults."""
        tail_s = self.latency_s_mean - self.latency_s_min
        return self.latency_s_min + (random.expovariate(1.0 / tail_s) if tail_s else 0.0)


DEFAULT_RESOURCES = BrokerResources()
DEFAULT_LINK = LinkOptions()
