"""What would be if: a simulation of a running network, with a change, and how far it is off.

network_snapshot.py   a network as a value, and as a JSON file; pure
changes_to_try.py     changes of it: traffic, brokers, overlay, plan, policies; pure
calibration.py        what the simulation takes from measurements; pure
rehearsed_network.py  one run in the simulator
network_figures.py    loads, hops, delays, messages of a run or a measurement; pure
rehearsing.py         before, after, error and gain
traffic_sample.py     what samplers saw of the publications of a network; pure
taking_snapshots.py   asks a running network for all of it
"""
