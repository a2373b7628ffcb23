"""What an application uses: connect, advertise, publish, subscribe.

session.py   what a client holds, and how it survives the loss of a connection or of a broker; pure
line.py      the connection to the broker, kept
events.py    what a subscription delivers: an asynchronous iterator
client.py    the asynchronous client
"""

from __future__ import annotations

from godwit.client.client import Client, connect
from godwit.client.events import Event, Events

__all__ = ["Client", "Event", "Events", "connect"]
