"""`allocation-large`: 400 and 1,000 brokers.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      claims of the thesis for large networks
"""

from __future__ import annotations

from godwit.experiments.allocation_large.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
