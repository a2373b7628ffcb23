"""The test kit, for authors of applications, overlays and policies.

memory_network.py     real brokers and clients in one event loop, without sockets
memory_coordinator.py ... with a coordinator that changes the network
memory_transport.py   ... and the connections between them
virtual_time.py       an event loop whose clock jumps over all waiting
witness.py            a live client that reports to observers, such as the oracle
table_checks.py       what routing tables must be when the network is quiet
live_play.py          plays a workload of workloads/ through live brokers

scripts.py            what clients do, in phases, as data; what must be delivered, by brute force
random_scripts.py     a random script for each seed
overlay_shapes.py     the same brokers in the shape that an overlay needs
script_players.py     plays a script in the simulator or through broker processes

random_runs.py        a random simulated run for each seed, checked by the oracle
random_moves.py       ... in which clients move
random_membership.py  ... in which brokers join and leave
random_reshaping.py   ... in which the network changes its shape
random_balancing.py   ... in which brokers balance their load
random_soft_links.py  soft links of a mesh that come and go at random
random_steering.py    ... in which brokers of clusters do so
random_content.py     random filters and records for them
storms/               random live runs in which brokers and connections fail while clients move
nemesis/              faults against live networks of broker processes, from outside
"""

from __future__ import annotations

from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.random_membership import random_membership
from godwit.testing.random_moves import random_moves
from godwit.testing.random_runs import RandomRun, random_run
from godwit.testing.random_scripts import random_script
from godwit.testing.script_players import Deliveries, play_live, play_simulated, play_through
from godwit.testing.scripts import Script, expected_deliveries
from godwit.testing.storms.storm import Storm, storm
from godwit.testing.table_checks import table_errors
from godwit.testing.virtual_time import run_in_virtual_time
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

__all__ = [
    "Deliveries",
    "MemoryNetwork",
    "Observer",
    "Oracle",
    "RandomRun",
    "Script",
    "Storm",
    "WitnessedClient",
    "expected_deliveries",
    "play_live",
    "play_simulated",
    "play_through",
    "random_membership",
    "random_moves",
    "random_run",
    "random_script",
    "run_in_virtual_time",
    "storm",
    "table_errors",
    "wait_for_deliveries",
]
