"""Moving a client to another broker, and the network to another shape, without loss.

move.py       the client's side, for the client library and for simulated clients
reshaping.py  a change of the network's shape, as its coordinator drives it
delta_moves.py  the shape after a broker has left a neighbour for another one

The brokers' side is in the overlay: overlay/tree/tree_routing.py turns advertisements, and
overlay/tree/presence.py forwards sweeps.
"""
