"""`balance-edges`: stars with more and more edge brokers.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of them
"""

from __future__ import annotations

from godwit.experiments.balance_edges.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
