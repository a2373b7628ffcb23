"""`allocation-forecast`: are plans right for traffic they were not made from?  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      our own claims about predictions and about the number of brokers
"""

from __future__ import annotations

from godwit.experiments.allocation_forecast.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
