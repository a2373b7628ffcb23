"""Storms: random runs of real brokers and clients in virtual time, in which brokers crash and
connections break while clients move.  One seed is one storm.

storm.py            one storm, from seed to result
balancing_storm.py  the same with brokers that balance their load
plan_storm.py       plans that the coordinator carries out while something fails
kill_storm.py       plans, in a phase of each of which a broker is killed
reshaping_storm.py  a network that changes its shape while brokers fail
overlay_storm.py    a network that changes from overlay to overlay, with failures or without
cluster_storm.py    brokers in clusters, some of which fail
cluster_outage.py   brokers in clusters that are given up, and come back
storm_clients.py    clients that publish, subscribe and move, and record what they receive
fault_injection.py  what fails, and when
storm_checks.py     what must be true when the network is quiet again
"""
