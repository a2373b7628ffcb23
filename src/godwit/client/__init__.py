"""What an application uses: connect, advertise, publish, subscribe.

post.py      our end of the stream to one broker; pure
holdings.py  what is advertised and subscribed to; pure
session.py   what a client holds, and how it survives the loss of a connection or of a broker; pure
line.py      the connection to a broker, kept
events.py    what a subscription delivers: an asynchronous iterator
journey.py   one move to another broker, between two lines
farewell.py  leaving the former one
moving.py    one move after the other
pinging.py   how far it is to other brokers, if ours wants to know
client.py    the asynchronous client
"""

from __future__ import annotations

from godwit.client.client import Client, connect
from godwit.client.events import ChannelEvent, ChannelEvents, Event, Events
from godwit.client.journey import Moved

__all__ = ["ChannelEvent", "ChannelEvents", "Client", "Event", "Events", "Moved", "connect"]
