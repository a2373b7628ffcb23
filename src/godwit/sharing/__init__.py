"""Channel subscriptions at a broker: shared, served from positions, measured.

shared_subscriptions.py  front-end and back-end subscriptions, pulls and pushes; pure
rates.py                 bytes per second of each back-end subscription; pure
outlets.py               where results leave the broker: what an outlet must do
live_channels.py         connects outlets, subscriptions and the data cluster
remote_datacluster.py    the data cluster, called over HTTP
gateway.py               channels over HTTP: the operations
http_session.py          ... and one subscriber's session, which is an outlet
"""
