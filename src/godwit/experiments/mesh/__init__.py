"""What the experiments about the mesh (Publiy) share.

mesh_setup.py  setup PS1 of the paper, in words and as cases
datasets.py    the paper's datasets
prepared.py    a network in which all have subscribed: set up once, and forked for every case
runs.py        how a case is run: a strategy, a fanout, a rate
limited.py     cases in which brokers can do less than is asked of them
measures.py    path lengths, pure forwards, delay, traffic, paths between brokers
claims.py      terms of claims: a strategy beside S0
figures.py     a bar for each strategy, and distributions
"""
