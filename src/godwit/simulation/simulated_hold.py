"""What a simulated broker holds while the network changes its shape.

Which messages wait is decided by the router (E3 in overlay/epochs/epoch_routing.py), and whatever
follows one of them on its link waits, too.
"""

from __future__ import annotations

from godwit.broker.core import Broker
from godwit.broker.effects import Effect
from godwit.broker.stimuli import EpochStimulus, Hop, Neighbour, Received
from godwit.errors import UsageError


class SimulatedHold:
    __slots__ = ("_held", "is_changing", "refusal")

    def __init__(self) -> None:
        self.is_changing = False
        self.refusal: str | None = None
        """Why the last request to change the epoch was refused, if it was."""
        self._held: dict[Hop, list[Received]] = {}

    def change_epoch(self, broker: Broker, stimulus: EpochStimulus, now_s: float) -> list[Effect]:
        """A coordinator asks for something; none if it is refused."""
        try:
            effects = broker.handle(stimulus, now_s=now_s)
        except UsageError as error:
            self.refusal = str(error)
            return []
        self.refusal = None
        self.read_phase(broker)
        return effects

    def read_phase(self, broker: Broker) -> None:
        self.is_changing = broker.epochs is not None and broker.epochs.is_changing

    def takes(self, received: Received, broker: Broker) -> bool:
        """Keep a message that has to wait; False if it has not."""
        held = self._held.get(received.last_hop)
        if held is None:
            epochs = broker.epochs
            if epochs is None or not epochs.starts_hold(received.message, received.last_hop):
                return False
            held = self._held[received.last_hop] = []
        held.append(received)
        return True

    def drop_lane(self, lane: int) -> list[Received]:
        """An epoch is over: what waited for its end, in order for each link."""
        held, self._held = self._held, {}
        return [
            received
            for hop, messages in held.items()
            if not isinstance(hop, Neighbour) or hop.lane != lane
            for received in messages
        ]

    def clear(self) -> None:
        self.is_changing = False
        self._held.clear()
