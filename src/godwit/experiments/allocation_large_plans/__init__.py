"""`allocation-large-plans`: plans for 400 and 1,000 brokers, not deployed.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        a plan, and its numbers
claims.py      claims of the thesis for large networks, of what is planned
"""

from __future__ import annotations

from godwit.experiments.allocation_large_plans.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
