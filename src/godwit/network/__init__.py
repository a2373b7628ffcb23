"""Drives brokers on sockets: the same broker as in the simulator, with real queues and real time.

    bytes --> Connection --> Port --> BrokerNode --> Broker.handle
    bytes <-- Connection <-- Port <-- Outbox <-------- effects

settings.py   what can be set, for one broker and for a whole network; TOML
port.py       one peer as the broker sees it: its stream, its connection, its queue
node.py       one broker: what its peers say goes in, read by read
outbox.py     ... and what it says goes out: effects become frames in the queues of peers
admission.py  who may come in: the handshake on an incoming connection
dialling.py   keeps a link to a neighbour
server.py     one process: sockets, signals, graceful stop
http.py       /metrics, /healthz, /routing, /move
channels.py   subscriptions to channels, between subscribers and the data cluster
outlets.py    where results of channels leave: ports of clients, sessions over HTTP
sessions.py   a subscriber that only speaks HTTP
gateway.py    ... and what it can ask
moving.py     clients are asked to move to other brokers
pinging.py    clients are asked how far they are from other brokers
logs.py       what a broker says about itself
tracing.py    what it did, message by message, for the lab
processes.py  a whole network of broker processes on this machine
service.py    a service beside them, as a process
together.py   both, from one file
"""

from __future__ import annotations

from godwit.network.processes import Processes
from godwit.network.server import BrokerServer
from godwit.network.settings import (
    BrokerSettings,
    Limits,
    NetworkSettings,
    ServiceSettings,
    TraceSettings,
    network_of,
)
from godwit.network.together import Together

__all__ = [
    "BrokerServer",
    "BrokerSettings",
    "Limits",
    "NetworkSettings",
    "Processes",
    "ServiceSettings",
    "Together",
    "TraceSettings",
    "network_of",
]
