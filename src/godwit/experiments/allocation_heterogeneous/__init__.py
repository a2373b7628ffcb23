"""`allocation-heterogeneous`: 80 brokers of three sizes.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      claims of the thesis for unequal brokers
"""

from __future__ import annotations

from godwit.experiments.allocation_heterogeneous.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
