"""What an application uses: connect, advertise, publish, subscribe.

deliveries.py            which publications are new; pure
holdings.py              what is advertised and subscribed to; pure
client_requests.py       when a broker is asked for it; pure
held_publications.py     publications that wait in the client; pure
stream_endpoint.py       the client's end of the stream to one broker; pure
client_session.py        a session that survives connections and brokers, of all these; pure
broker_connection.py     the connection to a broker, re-established when it is lost
connecting.py            `connect`: from addresses to a client
coordinated.py           asks a coordinator which broker to use
event_queue.py           what has arrived for one subscription, and how it ended
events.py                what a subscription delivers, as an asynchronous iterator
gaps.py                  publications that did not arrive, or may not have
live_move.py             one move to another broker
draining.py              leaving the old broker
mover.py                 moves, one at a time
round_trips.py           measures round trips to brokers when the broker asks for them
readiness.py             whether the network is complete
dispatch.py              which events go to which subscription, and back-pressure
client.py                the asynchronous client
durable_subscription.py  a subscription that acknowledges what the application has stored
croc_client.py           CROC: gathers the profiles of a whole network
"""

from __future__ import annotations

from godwit.client.client import Client
from godwit.client.connecting import connect
from godwit.client.event_queue import ChannelEvent, Event
from godwit.client.events import ChannelEvents, Events
from godwit.client.gaps import Gap, GapReason, Gaps
from godwit.client.live_move import Moved

__all__ = [
    "ChannelEvent",
    "ChannelEvents",
    "Client",
    "Event",
    "Events",
    "Gap",
    "GapReason",
    "Gaps",
    "Moved",
    "connect",
]
