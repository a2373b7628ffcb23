"""`mesh-forwarders`: how many brokers only forward a publication, and what the traffic is.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      pure forwarders, yield, traffic, load exchange
figures.py     table 2 and figure 11 of the paper
"""

from __future__ import annotations

from godwit.experiments.mesh_forwarders.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
