"""The brokers of production in virtual time.  Public: for authors of overlays and policies.

simulator.py         topology, clients, run; brokers and links that come and go
simulated_broker.py  one broker between modelled CPU and output
simulated_paths.py   acknowledgements, and what waits for them, where there are several paths
arranging.py         timers, pings, links and decisions of a broker
servers.py           a server with a queue: matching engine, output
queues.py            what waits in the queues of a broker, and leaves it
wires.py             one direction of a link
agenda.py            virtual time
resources.py         the resources of a broker and of a link
simulated_client.py  an application
simulated_move.py    moves of a client
homes.py             the connection of a client to a broker
attached_clients.py  the clients of a broker; what arrives for them
last_delivered.py    what they have received
simulated_reshaping.py  changes the shape of the network
simulated_hold.py    what a broker holds meanwhile
broker_drain.py      empties a broker and lets it leave
forking.py           continues one simulation in several ways
faults.py            crashes, pauses, delays, partitions
injection.py         makes them happen
disturbance.py       other work on the brokers' machines
observers.py         the interface of those that watch a run
oracle.py            checks every delivery against brute force
statistics.py        counts messages, deliveries, delays and hops
cluster_load_meter.py  measures how many clusters are best
simulation_trace.py  records a trace
playing.py           plays a workload of workloads/
simulated_gathering.py  CROC: gathers the profiles of all brokers
"""

from __future__ import annotations

from godwit.simulation.faults import BrokerPause, Crash, Delay, Fault, Partition, Restart
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics

__all__ = [
    "BrokerPause",
    "BrokerResources",
    "Crash",
    "Delay",
    "Fault",
    "LinkOptions",
    "Observer",
    "Oracle",
    "Partition",
    "Restart",
    "Simulator",
    "Statistics",
]
