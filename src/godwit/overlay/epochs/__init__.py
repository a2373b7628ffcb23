"""A network that changes its shape while it runs: two epochs, one flip.

epoch_phases.py         the phases of a change at one broker, as a table
epoch_routing.py        a router that holds one routing, and two during a change
epoch_confirmations.py  requests are in effect when both epochs say so
epoch_names.py          the names of clients in both
epoch_sweeps.py         sweeps that meet the end of an epoch
epoch_places.py         the neighbours of a broker in a shape

docs/reshaping.md tells how a change goes, and what happens when something fails.
"""
