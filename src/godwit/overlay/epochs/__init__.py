"""A network that changes its shape while it runs: two epochs, one flip.

epoch_phases.py         the phases of a change at one broker, as a table
epoch_routing.py        a router that holds one routing, and two during a change
epoch_views.py          what can be seen of it
epoch_overlays.py       the kind of each epoch: tree, clusters, mesh
epoch_drain.py          how the old epoch ends, link by link
epoch_paths.py          acknowledgements and soft links, if an epoch is a mesh
epoch_confirmations.py  requests are in effect when both epochs say so
epoch_names.py          the names of clients in both
epoch_sweeps.py         sweeps that meet the end of an epoch
epoch_places.py         the neighbours of a broker in a shape

docs/reshaping.md tells how a change goes, and what happens when something fails.
"""
