"""What a broker says, on its way into the queues of its peers.

    effects --> frames --> ports, which are touched --> flush: each is written to, once

Publications are most of it, and come in runs.  Their bytes go on as they came, and whatever goes
to the same peer is put into its queue together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.broker.effects import Deliver, Effect, ModuleEffect, Notify, Send
from godwit.broker.stimuli import Client, Hop
from godwit.content.messages import Letter, Publication, Sweep
from godwit.network.port import Port
from godwit.wire.frames import encode
from godwit.wire.stamps import frame_of

#: In a tree no path is that long: a publication with more hops goes round in circles.
HOPS_MAX = 255


class Outbox:
    def __init__(
        self,
        ports: Mapping[Hop, Port],
        dropped: Counter[str],
        arrange: Callable[[ModuleEffect], None],
    ) -> None:
        """`dropped` is where to count what is not passed on, `arrange` does what is not said."""
        self.deliveries = 0
        self.touched: dict[Port, None] = {}
        """Ports that got something, and were not written to since."""
        self._ports = ports
        self._dropped = dropped
        self._arrange = arrange

    def flush(self) -> None:
        while self.touched:
            port, _ = self.touched.popitem()
            port.flush()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Carry out what the broker asked for."""
        for effect in effects:
            if type(effect) is Deliver:
                self._deliver(effect)
            elif type(effect) is Send:
                self._send(effect)
            elif type(effect) is Notify:
                if effect.to in self._ports:  # Else it has just left.
                    self._port(effect.to).put(encode(effect.notice))
            else:
                self._arrange(effect)

    def perform_run(
        self, wanted: Iterable[tuple[Sequence[Effect], bytes]], stamp: bytes | None
    ) -> None:
        """As `perform`, for what the broker asked for each publication, which came as these bytes.

        What a client wrote is stamped first; what a neighbour wrote goes on as it is.
        """
        lanes: dict[Hop, list[bytes]] = {}
        for effects, body in wanted:
            for effect in effects:
                to: Sequence[Hop]
                if type(effect) is Deliver:
                    publication, to = effect.publication, effect.to
                elif type(effect) is Send and type(effect.message) is Publication:
                    publication, to = effect.message, (effect.to,)
                else:
                    self._put(lanes)  # It keeps its place behind what came before.
                    self.perform((effect,))
                    continue
                if publication.is_control or effect.hops > HOPS_MAX:
                    self.perform((effect,))
                    continue
                frame = frame_of(publication, effect.hops, body, stamp)
                for hop in to:
                    if hop in lanes:
                        lanes[hop].append(frame)
                    else:
                        lanes[hop] = [frame]
        self._put(lanes)

    def _put(self, lanes: dict[Hop, list[bytes]]) -> None:
        for hop, frames in lanes.items():
            self._port(hop).put_publications(frames)
            if type(hop) is Client:
                self.deliveries += len(frames)
        lanes.clear()

    def _deliver(self, effect: Deliver) -> None:
        frame = encode(effect.publication, effect.hops)
        for client in effect.to:
            self._port(client).put_publication(frame, is_control=effect.publication.is_control)
        self.deliveries += len(effect.to)

    def _send(self, effect: Send) -> None:
        message = effect.message
        if type(message) is Letter and effect.to not in self._ports:
            return  # A module writes to a neighbour that has just gone.
        port = self._port(effect.to)
        if type(message) is Sweep:
            port.put_publication(encode(message), is_control=False)
        elif type(message) is not Publication:
            port.put(encode(message, effect.hops))
        elif effect.hops > HOPS_MAX:
            self._dropped["too many hops"] += 1
        else:
            frame = encode(message, effect.hops)
            port.put_publication(frame, is_control=message.is_control)

    def _port(self, hop: Hop) -> Port:
        port = self._ports[hop]
        self.touched[port] = None
        return port
