"""Moving a client to another broker without loss.

move.py  the client's side, for the client library and for simulated clients

The brokers' side is in the overlay: overlay/tree/tree_routing.py turns advertisements, and
overlay/tree/presence.py forwards sweeps.
"""
