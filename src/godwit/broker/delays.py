"""How long messages take through one broker, for policies that add it up along a path (5.2.1).

    input queue --> matching engine --> output to neighbours, or to clients

The driver feeds it, as it feeds the meters, if the broker has modules.  The windows of the meters
do not serve here: the load of an idle window is zero, but an idle broker is not infinitely fast.
So these are running means of the last messages, however long ago they were.
"""

from __future__ import annotations

from godwit.profile.running_average import RunningMean

#: The last message counts this much, once there were enough; about the last hundred matter.
WEIGHT = 0.02


class Delays:
    __slots__ = ("input_queue_s", "matching_s", "to_clients_s", "to_neighbours_s")

    def __init__(self) -> None:
        self.input_queue_s = RunningMean(WEIGHT)
        self.matching_s = RunningMean(WEIGHT)
        self.to_neighbours_s = RunningMean(WEIGHT)
        """From leaving the matching engine to leaving the broker."""
        self.to_clients_s = RunningMean(WEIGHT)

    def on_matched(self, waited_s: float, served_s: float) -> None:
        """The matching engine has processed a message that waited for `waited_s`."""
        self.input_queue_s.add(waited_s)
        self.matching_s.add(served_s)

    def on_sent(self, waited_s: float, is_to_neighbour: bool) -> None:
        """A message has left the broker, so long after it left the matching engine."""
        (self.to_neighbours_s if is_to_neighbour else self.to_clients_s).add(waited_s)
