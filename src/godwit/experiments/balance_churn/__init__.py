"""`balance-churn`: subscribers come and go all the time.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of churn
figures.py     figures 7.3g and h of the thesis
"""

from __future__ import annotations

from godwit.experiments.balance_churn.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
