"""Drives real brokers in virtual time.  Public: authors of overlays and policies test with it.

simulator.py       the door: topology, clients, run
node.py            one broker between modelled CPU and output; servers.py, agenda.py below it
resources.py       what a broker and a link have; faults.py, injection.py: what goes wrong
observers.py       who watches; oracle.py checks every delivery, statistics.py counts
playing.py         plays a workload of workloads/; stock_scenario.py, random_runs.py: whole runs
"""

from __future__ import annotations

from godwit.simulation.faults import Crash, Delay, Fault, Partition, Pause, Restart
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics

__all__ = [
    "BrokerResources",
    "Crash",
    "Delay",
    "Fault",
    "LinkOptions",
    "Observer",
    "Oracle",
    "Partition",
    "Pause",
    "Restart",
    "Simulator",
    "Statistics",
]
