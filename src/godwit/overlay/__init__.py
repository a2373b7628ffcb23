"""How brokers are linked, and how a publication finds its way.

topology.py says who is linked with whom.  Each other file is a routing strategy, an
implementation of `broker.routing.Routing`: tree.py (PADRES).
"""
