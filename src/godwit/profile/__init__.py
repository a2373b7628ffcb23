"""Profiles of subscriptions and publishers: the measurements that placement and allocation use.

Pure: no I/O, no clock, no randomness.

bit_vector.py            which publications of one publisher were received, in a shifting window
subscription_profile.py  bit vectors of a subscription, by publisher; set relations, expected load
publisher_profile.py     rate, bandwidth and last message id of a publisher
running_average.py       averages that follow the newest values
rate_window.py           sums by key over the last seconds
matching_delay.py        matching delay as a linear function of the number of subscriptions
"""
