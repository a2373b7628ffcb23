"""`grape-random`: subscribers are mixed at random.  See placement/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      G28 to G32 of the thesis
"""

from __future__ import annotations

from godwit.experiments.grape_random.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
