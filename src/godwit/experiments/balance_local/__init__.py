"""`balance-local`: local load balancing in a star of four edge brokers, on four platforms.

experiment.py        the declaration: question, setup, scales, remarks
claims.py            what the thesis says of loads, subscribers, delays and overhead
parameter_claims.py  what it says of the balancer's settings
figures.py           figures 7.3, 7.5, 7.6 and 7.7 of the thesis
"""

from __future__ import annotations

from godwit.experiments.balance_local.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
