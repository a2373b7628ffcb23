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
                publication = effect.publication
                frame = encode(publication, effect.hops)
                self._put_copies(frame, effect.to, is_control=publication.is_control)
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

        What a client wrote is stamped first; what a neighbour wrote goes on as it is.  If one of
        them cannot be handled, those before it have been.
        """
        lanes: dict[Hop, list[bytes]] = {}
        try:
            for effects, body in wanted:
                self._sort(effects, body, stamp, lanes)
        finally:
            self._put(lanes)

    def _sort(
        self,
        effects: Iterable[Effect],
        body: bytes,
        stamp: bytes | None,
        lanes: dict[Hop, list[bytes]],
    ) -> None:
        """Put copies of one publication into the lanes of their peers; do the rest at once."""
        crossed, frame = -1, b""
        for effect in effects:
            to: Sequence[Hop]
            if type(effect) is Deliver:
                publication, to = effect.publication, effect.to
            elif type(effect) is Send and type(effect.message) is Publication:
                publication, to = effect.message, (effect.to,)
                if effect.hops > HOPS_MAX:
                    self._dropped["too many hops"] += 1
                    continue
            else:
                self._put(lanes)  # It keeps its place behind what came before.
                self.perform((effect,))
                continue
            if effect.hops != crossed:  # Most copies have crossed as many links as the last.
                crossed, frame = effect.hops, frame_of(publication, effect.hops, body, stamp)
            if publication.is_control:
                self._put_copies(frame, to, is_control=True)
                continue
            for hop in to:
                if hop in lanes:
                    lanes[hop].append(frame)
                else:
                    lanes[hop] = [frame]

    def _put(self, lanes: dict[Hop, list[bytes]]) -> None:
        for hop, frames in lanes.items():
            self._port(hop).put_publications(frames)
            if type(hop) is Client:
                self.deliveries += len(frames)
        lanes.clear()

    def _put_copies(self, frame: bytes, to: Iterable[Hop], *, is_control: bool) -> None:
        for hop in to:
            self._port(hop).put_publication(frame, is_control=is_control)
            self.deliveries += type(hop) is Client

    def _send(self, effect: Send) -> None:
        message = effect.message
        if type(message) is Letter and effect.to not in self._ports:
            return  # A module writes to a neighbour that has just gone.
        frame = encode(message, effect.hops)
        if type(message) is Publication:
            self._put_copies(frame, (effect.to,), is_control=message.is_control)
        elif type(message) is Sweep:  # It keeps its place among publications, and counts as one.
            self._put_copies(frame, (effect.to,), is_control=False)
        else:
            self._port(effect.to).put(frame)

    def _port(self, hop: Hop) -> Port:
        port = self._ports[hop]
        self.touched[port] = None
        return port
