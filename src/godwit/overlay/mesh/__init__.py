"""Routing in a mesh of soft links over a tree: opportunistic multipath forwarding (Publiy).

master_overlay_map.py   MOM: the tree within delta links of a broker, learnt from its neighbours
working_overlay_map.py  WOM: the brokers that are linked directly, with their positions in the tree
strategies.py           S0, S1, S2: which of them get a publication
anchors.py              which broker a subscription is known by
anchor_table.py         subscriptions by anchor: who wants a publication, as a bit mask
unsettled_copies.py     copies that are not acknowledged, and the paths that they keep in use
forwarding.py           the decision for one publication, from what matches and what is unsettled
soft_links.py           how two brokers agree to use, and to close, a soft link
quiescence.py           how a broker learns that all that was published before has arrived
mesh_settings.py        delta, strategy, order and others
mesh_routing.py         the router

Which soft links there should be is a policy: policies/soft_links/.
"""
