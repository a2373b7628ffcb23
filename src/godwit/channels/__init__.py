"""Subscriptions to channels at a broker: shared, served from positions, measured.  All pure.

requests.py  what brokers ask of the data cluster, and what it answers
desk.py      who wants what: front-end and back-end subscriptions, pulls and pushes
rates.py     how much each back-end subscription brings in
"""
