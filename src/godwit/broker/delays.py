"""How long messages take through one broker: what a policy adds up along a path (thesis 5.2.1).

    input queue --> matching engine --> output to neighbours, or to clients

The driver feeds it, as it feeds the meters, if there is a module that may ask.  The meters' windows
would not do: a load of nothing is zero, but a broker that was silent for a while is not infinitely
fast.  So these are running means of the last messages, however long ago they were.
"""

from __future__ import annotations

#: The last message counts this much, once there were enough; about the last hundred matter.
WEIGHT = 0.02


class RunningMean:
    __slots__ = ("_count", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        self._count += 1
        # The first ones count alike, or the very first would count most.
        self.value += (value - self.value) * max(WEIGHT, 1.0 / self._count)


class Delays:
    __slots__ = ("input_queue_s", "matching_s", "to_clients_s", "to_neighbours_s")

    def __init__(self) -> None:
        self.input_queue_s = RunningMean()
        self.matching_s = RunningMean()
        self.to_neighbours_s = RunningMean()
        """From leaving the matching engine to having left the broker."""
        self.to_clients_s = RunningMean()

    def on_matched(self, waited_s: float, served_s: float) -> None:
        """The matching engine is done with a message that had to wait for it."""
        self.input_queue_s.add(waited_s)
        self.matching_s.add(served_s)
