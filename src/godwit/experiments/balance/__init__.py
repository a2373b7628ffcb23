"""What the experiments about load balancing (thesis, chapter 4 and 7.1) share.

platforms.py          what brokers can do: tables 7.2 and 7.4
scenes.py             what a case plays: brokers, clients, and when they do what
runs.py               how a case is run, and its settings
balance_setup.py      the setup in words, and cases
readings.py           tables of a trace as plain values
load_measures.py      loads of edge brokers over time
session_measures.py   sessions, moves, and errors of estimates
cluster_measures.py   clusters, and sessions between them
overhead_measures.py  messages by what caused them, and delays
measures.py           all measures, and the function that computes them
claims.py             terms of claims
figures.py            curves over time
"""
