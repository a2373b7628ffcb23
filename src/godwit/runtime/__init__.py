"""Drives brokers on sockets: the same broker as in the simulator, with real queues and real time.

    bytes --> Connection --> PeerReader --> BrokerNode --> Broker
    bytes <-- Connection <-- Port <-------- Outbox <------ effects

settings.py       settings of one broker and of a whole network; TOML
toml_writer.py    writes TOML
peer_reader.py    reads from one peer: frames become messages
broker_node.py    one broker: messages are handled, read by read; peers come and go
node_tracer.py    what watches a node
held_messages.py  messages that wait, peer by peer
path_hold.py      what waits because it would overtake what is on another path
outbox.py         effects become frames in the queues of peers, are written and acknowledged
port.py           one peer: its stream, its connection, its queue
output_limiter.py  the bandwidth that a broker keeps to
live_meters.py    its load: what is counted, and what its sockets say
node_links.py     the links of the broker: expected, there, missing elsewhere
node_epochs.py    the epochs of the broker: a network that changes its shape
epoch_hold.py     ... what waits meanwhile
epoch_http.py     ... /epoch
routing_http.py   tables with filters, and where a publication would go
reshaping_run.py  ... carries a change out, for a coordinator
giving_up.py      what is lost when a link is given up
recovery.py       after a failure: publications are held until the tables are complete
node_recovery.py  ... how a broker finds out that it has failed
node_names.py     clients that wait for their names, or lose them
admission.py      the handshake on an incoming connection
dialling.py       keeps a link to a neighbour
server.py         one process: sockets, signals, graceful stop
broker_orders.py  what a coordinator orders, and what the broker says about itself
stopping.py       how a broker leaves its peers
broker_http.py    /metrics, /healthz, /routing, /network, /move, /order
balancing_http.py  /balancing, and the metrics of the load balancer
gathering_http.py  /gatherings, and the metrics of profiling
decision_log.py   decisions of policies: logged, counted, added up
port_outlet.py    results of channels leave by the port of a client
client_moves.py   clients are asked to move to other brokers
pings.py          clients are asked for their round-trip times to other brokers
reporting.py      load reports to the coordinator
logs.py           log lines, as text or JSON
broker_trace.py   what the broker did, message by message, for the lab
processes.py      a network of broker processes on this machine
forks.py          ... which are forked, as that is faster
fork_server.py    ... by this process
service.py        a data cluster or a coordinator, as a process
restarting.py     processes that are started again when they end
returning.py      brokers that have left, and come back when they are needed
deployment.py     brokers and services, from one file
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from godwit.overlay.topology import balanced_tree, chain, random_tree, star
    from godwit.runtime.deployment import LocalDeployment
    from godwit.runtime.processes import Processes
    from godwit.runtime.restarting import RestartLimit
    from godwit.runtime.server import BrokerServer
    from godwit.runtime.settings import (
        BrokerSettings,
        Limits,
        NetworkSettings,
        ServiceSettings,
        TraceSettings,
        network_of,
    )

#: Where each name is.  They are imported when they are used: `godwit pub` needs only logs.py, and
#: a whole broker would take a third of its start.
_PLACES = {
    "BrokerServer": "godwit.runtime.server",
    "BrokerSettings": "godwit.runtime.settings",
    "Limits": "godwit.runtime.settings",
    "LocalDeployment": "godwit.runtime.deployment",
    "NetworkSettings": "godwit.runtime.settings",
    "Processes": "godwit.runtime.processes",
    "RestartLimit": "godwit.runtime.restarting",
    "ServiceSettings": "godwit.runtime.settings",
    "TraceSettings": "godwit.runtime.settings",
    "balanced_tree": "godwit.overlay.topology",
    "chain": "godwit.overlay.topology",
    "network_of": "godwit.runtime.settings",
    "random_tree": "godwit.overlay.topology",
    "star": "godwit.overlay.topology",
}

__all__ = [
    "BrokerServer",
    "BrokerSettings",
    "Limits",
    "LocalDeployment",
    "NetworkSettings",
    "Processes",
    "RestartLimit",
    "ServiceSettings",
    "TraceSettings",
    "balanced_tree",
    "chain",
    "network_of",
    "random_tree",
    "star",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
