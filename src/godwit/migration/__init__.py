"""Moving clients from broker to broker without loss.  Pure: no I/O, no clock.

moving.py   the client's side, for the library and for simulated clients alike

The brokers' side is in the routing: overlay/tree.py turns advertisements, overlay/presence.py
leads sweeps.
"""
