"""The loads of offloader and acceptor after a move, estimated.

Paper    Cheung, thesis 4.2.2, equations (4.9) to (4.12); the acceptor's limit in 4.3.1.
Words    localInfo, remoteInfo -> local, remote; i'r -> input after the move; n -> subscriptions;
         o'u -> bytes per second after the move; balanceDiff -> difference; Nf ->
         delay_normalization_s.
Claim    `difference` never rises if more moves: not with the rates (saved, added), not with the
         number of subscriptions, not with the bytes.  `fits` never turns true again once it was
         false for a move: moves only add to the acceptor.  The offload algorithms rest on both.
Departs  1. The acceptor's limit is the lower overload threshold for each resource: input, CPU,
            output, memory (open in the thesis: "should not overload any of the resources").
         2. Memory is estimated with a constant share for each subscription, where one is known.
         3. No rate becomes negative: samples may say that more leaves than was measured.
Tested   tests/policies/offload/test_estimates.py.

A move has four figures: the publications per second that the offloader no longer receives (saved)
and that the acceptor receives in addition (added), the subscriptions, and the bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TypeAlias

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.settings import BalancingSettings

#: (saved per second, added per second, subscriptions, bytes per second) -> difference afterwards
Difference: TypeAlias = Callable[[float, float, int, float], float]


class LoadPair:
    """Offloader and acceptor with all moves so far."""

    __slots__ = (
        "_action",
        "_limit",
        "_local",
        "_remote",
        "_unit_s",
        "difference_after",
        "local_bytes_s",
        "local_input",
        "local_memory",
        "local_n",
        "remote_bytes_s",
        "remote_input",
        "remote_memory",
        "remote_n",
    )

    def __init__(
        self,
        action: OffloadAction,
        local: BrokerInfo,
        remote: BrokerInfo,
        settings: BalancingSettings,
    ) -> None:
        self._action = action
        self._local, self._remote = local, remote
        self._unit_s = settings.delay_normalization_s
        self._limit = settings.lower_overload_threshold
        self.local_input, self.remote_input = local.input_per_s, remote.input_per_s
        self.local_n, self.remote_n = local.subscriptions, remote.subscriptions
        self.local_bytes_s = local.output_used_bytes_s
        self.remote_bytes_s = remote.output_used_bytes_s
        self.local_memory, self.remote_memory = local.memory_utilisation, remote.memory_utilisation
        self.difference_after: Difference = {
            OffloadAction.INPUT: self.input_difference,
            OffloadAction.MATCH: self._match_difference,
            OffloadAction.OUTPUT: self._output_difference,
        }[action]

    # -- the metric of interest after a move ---------------------------------------------------

    @property
    def difference(self) -> float:
        """Of the metric of interest, offloader minus acceptor, with the moves so far."""
        return self.difference_after(0.0, 0.0, 0, 0.0)

    def input_difference(
        self, saved: float, added: float, subscriptions: int, bytes_s: float
    ) -> float:
        """(4.10): Ir = i'r d(n') of both."""
        local_input = max(0.0, self.local_input - saved)
        local_n = max(0, self.local_n - subscriptions)
        return local_input * self._local.matching.delay_s(local_n) - (
            self.remote_input + added
        ) * self._remote.matching.delay_s(self.remote_n + subscriptions)

    def _match_difference(
        self, saved: float, added: float, subscriptions: int, bytes_s: float
    ) -> float:
        """(4.9), in units of Nf."""
        local_n = max(0, self.local_n - subscriptions)
        local_s = self._local.matching.delay_s(local_n)
        remote_s = self._remote.matching.delay_s(self.remote_n + subscriptions)
        return (local_s - remote_s) / self._unit_s

    def _output_difference(
        self, saved: float, added: float, subscriptions: int, bytes_s: float
    ) -> float:
        """(4.11) and (4.12)."""
        left = max(0.0, self.local_bytes_s - bytes_s)
        return ratio(left, self._local.output_total_bytes_s) - ratio(
            self.remote_bytes_s + bytes_s, self._remote.output_total_bytes_s
        )

    # -- the acceptor's limit ------------------------------------------------------------------

    def fits(self, added: float, subscriptions: int, bytes_s: float) -> bool:
        """Whether no resource of the acceptor exceeds the limit after a move."""
        return self.fits_engine(added, subscriptions) and self.fits_output(bytes_s)

    def fits_engine(self, added: float, subscriptions: int) -> bool:
        """Of input, CPU and memory only."""
        limit, remote = self._limit, self._remote
        n = self.remote_n + subscriptions
        return (self.remote_input + added) * remote.matching.delay_s(
            n
        ) <= limit and self.remote_memory + subscriptions * remote.memory_per_subscription <= limit

    def fits_output(self, bytes_s: float) -> bool:
        total = self._remote.output_total_bytes_s
        return ratio(self.remote_bytes_s + bytes_s, total) <= self._limit

    def obstacle(self, added: float, subscriptions: int, bytes_s: float) -> str:
        """Which resource of the acceptor a move would load beyond the limit, in words."""
        remote = self._remote
        delay_s = remote.matching.delay_s(self.remote_n + subscriptions)
        found = {
            "input": (self.remote_input + added) * delay_s,
            "output": ratio(self.remote_bytes_s + bytes_s, remote.output_total_bytes_s),
            "memory": self.remote_memory + subscriptions * remote.memory_per_subscription,
        }
        return ", ".join(
            f"{name} {value:.3f} > {self._limit:g}"
            for name, value in found.items()
            if value > self._limit
        )

    # -- moves ---------------------------------------------------------------------------------

    def move(self, saved: float, added: float, subscriptions: int, bytes_s: float) -> None:
        local, remote = self._local, self._remote
        self.local_input = max(0.0, self.local_input - saved)
        self.local_n = max(0, self.local_n - subscriptions)
        self.local_bytes_s = max(0.0, self.local_bytes_s - bytes_s)
        leaving = subscriptions * local.memory_per_subscription
        self.local_memory = max(0.0, self.local_memory - leaving)
        self.remote_input += added
        self.remote_n += subscriptions
        self.remote_bytes_s += bytes_s
        self.remote_memory += subscriptions * remote.memory_per_subscription

    @property
    def local(self) -> BrokerInfo:
        """The offloader with the moves so far."""
        return replace(
            self._local,
            input_per_s=self.local_input,
            subscriptions=self.local_n,
            output_used_bytes_s=self.local_bytes_s,
            memory_utilisation=self.local_memory,
        )

    @property
    def remote(self) -> BrokerInfo:
        """The acceptor with the moves so far."""
        return replace(
            self._remote,
            input_per_s=self.remote_input,
            subscriptions=self.remote_n,
            output_used_bytes_s=self.remote_bytes_s,
            memory_utilisation=self.remote_memory,
        )


def ratio(used: float, total: float) -> float:
    """(4.2) without a limit it is 0."""
    if total > 0:
        return used / total
    return inf if used > 0 else 0.0
