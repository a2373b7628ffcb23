"""`mesh-throughput`: what is delivered when brokers or their uplinks are saturated.

experiment.py  the declaration: question, setup, scales
claims.py      throughput by fanout and strategy
figures.py     figures 13 (a, b) and 14 of the paper
"""

from __future__ import annotations

from godwit.experiments.mesh_throughput.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
