"""The output of a broker: effects become frames in the queues of peers, are written, acknowledged.

    effects --> frames --> ports --> write: each port that got something, once
                                     acknowledge: the source of the read, when its copies are

Publications are most of it, and come in runs.  Their bytes leave as they came, and all that go to
the same peer are put into its queue together.

All acknowledgements are sent from here.  When a read is acknowledged: broker/pending_acks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.broker.effects import Deliver, DriverEffect, Effect, Notify, NotifyAll, Send
from godwit.broker.pending_acks import PendingAcks, Settled
from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.messages import Letter, MoveTo, PartLost, Publication, Sweep
from godwit.protocol.frames import encode
from godwit.protocol.stamps import frame_of
from godwit.runtime.port import Port

#: No path in a tree is that long: a publication with more hops is in a loop.
HOPS_MAX = 255


class Outbox:
    def __init__(
        self,
        ports: Mapping[Hop, Port],
        dropped: Counter[str],
        arrange: Callable[[DriverEffect], None],
    ) -> None:
        """`dropped` counts what is not passed on; `arrange` performs effects that send nothing."""
        self.deliveries = 0
        self.acks: PendingAcks[Port] = PendingAcks()
        self._touched: dict[Port, None] = {}
        """Ports that got something, and were not written to since."""
        self.on_acknowledging: Callable[[Port], None] | None = None
        """Called with a port when something was acknowledged to its peer, if it matters."""
        self._ports = ports
        self._dropped = dropped
        self._arrange = arrange

    # -- effects become frames -----------------------------------------------------------------

    def perform_run(
        self, wanted: Iterable[tuple[Sequence[Effect], bytes]], stamp: bytes | None
    ) -> None:
        """Put copies of publications: for each one the effects, and the bytes it came as.

        `stamp` is put on what a client sent; what a neighbour sent leaves as it is.  If one of
        them cannot be handled, those before it have been.
        """
        lanes: dict[Hop, list[bytes]] = {}
        try:
            for effects, body in wanted:
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
                    if effect.hops != crossed:  # Most copies have crossed as many as the last.
                        crossed = effect.hops
                        frame = frame_of(publication, crossed, body, stamp)
                    if publication.is_control:
                        self._put_copies(frame, to, is_control=True)
                        continue
                    for hop in to:
                        lane = lanes.get(hop)
                        if lane is None:
                            lanes[hop] = [frame]
                        else:
                            lane.append(frame)
        finally:
            self._put(lanes)

    def _put(self, lanes: dict[Hop, list[bytes]]) -> None:
        for hop, frames in lanes.items():
            self._port(hop).put_publications(frames)
            if type(hop) is LocalClient:
                self.deliveries += len(frames)
        lanes.clear()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Put the frames of these effects into the queues of their peers."""
        for effect in effects:
            if type(effect) is Deliver:
                publication = effect.publication
                frame = encode(publication, effect.hops)
                self._put_copies(frame, effect.to, is_control=publication.is_control)
            elif type(effect) is Send:
                self._send(effect)
            elif type(effect) is Notify:
                if effect.to not in self._ports:
                    continue  # The client has just left.
                if type(effect.notice) is MoveTo:  # It helps most where the queue is long.
                    self._ports[effect.to].put_ahead(encode(effect.notice))
                else:
                    self._port(effect.to).put(encode(effect.notice))
            elif type(effect) is NotifyAll:
                self._notify_all(effect)
            else:
                self._arrange(effect)

    def _notify_all(self, effect: NotifyAll) -> None:
        for hop in self._ports:
            if type(hop) is LocalClient:
                frame = encode(effect.notice_for(hop.name))
                if effect.notice.is_over:
                    self._port(hop).put(frame)
                else:  # A publisher knows of the gap before it gets the next acknowledgement.
                    self._ports[hop].put_ahead(frame)

    def _put_copies(self, frame: bytes, to: Iterable[Hop], *, is_control: bool) -> None:
        for hop in to:
            self._port(hop).put_publication(frame, is_control=is_control)
            self.deliveries += type(hop) is LocalClient

    def _send(self, effect: Send) -> None:
        message = effect.message
        if type(message) is Letter and effect.to not in self._ports:
            return  # The link was removed after the module decided.
        frame = encode(message, effect.hops)
        if type(message) is Publication:
            self._put_copies(frame, (effect.to,), is_control=message.is_control)
        elif type(message) is PartLost:  # Acknowledgements of what was lost follow it.
            self._ports[effect.to].put_ahead(frame)
        elif type(message) is Sweep:  # It keeps its place among publications, and counts as one.
            self._put_sweep(frame, effect.to, message)
        else:
            self._port(effect.to).put(frame)

    def _put_sweep(self, frame: bytes, to: Hop, sweep: Sweep) -> None:
        if sweep.origin:
            # What it answers does not wait for it: answers go from ring to ring, and the waiting
            # would have cycles.  If it is lost, a client stays where it is.
            port = self._ports[to]
            port.put_publication(frame, is_control=False)
            port.flush()
        else:
            self._put_copies(frame, (to,), is_control=False)

    def _port(self, hop: Hop) -> Port:
        port = self._ports[hop]
        self._touched[port] = None
        return port

    # -- frames are written --------------------------------------------------------------------

    def touch(self, port: Port) -> None:
        """Include a port in the next write."""
        self._touched[port] = None

    def write(self) -> dict[Port, int]:
        """Write to every port that got something; the result is up to where each has copies."""
        touched, positions = self._touched, dict[Port, int]()
        while touched:
            port, _ = touched.popitem()
            port.flush()
            positions[port] = port.stream.position
        return positions

    def perform_now(self, effects: Iterable[Effect]) -> None:
        """Perform and write at once, also in the middle of a read, which keeps its own ports."""
        touched, self._touched = self._touched, {}
        self.perform(effects)
        self.write()
        self._touched = touched

    # -- what came in is acknowledged ----------------------------------------------------------

    def open(self, port: Port) -> None:
        self.acks.open(port)

    def restart(self, port: Port) -> None:
        """The peer has lost its state, and will send again what was not acknowledged."""
        self._acknowledge(self.acks.restart(port, port.stream.answered))

    def close(self, port: Port) -> None:
        """The peer is gone: nothing waits for it any more."""
        self._touched.pop(port, None)
        self._acknowledge(self.acks.close(port))

    def detour(self, lost: Port, effects: Iterable[Effect]) -> None:
        """Copies that a port did not deliver go to others: what waited for it waits for those."""
        touched, self._touched = self._touched, {}
        self.perform(effects)
        self.acks.replace(lost, self.write())
        self._touched = touched

    def on_handled(
        self, source: Port, size_bytes: int, positions: dict[Port, int], *, held: int = 0
    ) -> None:
        """What has come from a peer was handled; copies were put up to these positions.

        The last ones are `held` and were not.
        """
        received = source.stream.received - held
        if received != source.acknowledged:  # Else the read had acknowledgements only.
            positions.pop(source, None)  # Two peers that wait for each other would do so for ever.
            self._acknowledge((self.acks.handled(source, received, size_bytes, positions),))

    def on_acknowledged(self, port: Port) -> None:
        """A peer has acknowledged something: write more, and acknowledge what waited for it."""
        port.flush()
        port.on_progress()
        self._acknowledge(self.acks.acknowledged(port, port.stream.answered))
        if port.is_isolated and port.end_isolation():
            self.acks.expect(port)

    def excuse(self, port: Port) -> None:
        """Acknowledge in the place of a peer that is isolated."""
        self._acknowledge(self.acks.excuse(port))

    def _acknowledge(self, settled: Iterable[Settled[Port]]) -> None:
        for source, received, awaits, pending_bytes in settled:
            if awaits is not None:
                awaits.on_awaited()
            source.acknowledge(received, pending_bytes)
            if self.on_acknowledging is not None:
                self.on_acknowledging(source)
