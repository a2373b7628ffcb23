"""`covering`: what covering saves.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        how a case is run: subscribers join a tree, with or without covering
measures.py    subscriptions sent and stored; how many the tree predicts
claims.py      what covering saves, and what it must not change
figures.py     bars with and without covering, for each mix
"""

from __future__ import annotations

from godwit.experiments.covering.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
