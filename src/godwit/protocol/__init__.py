"""The protocol between clients and brokers: frames, streams, the handshake, and reconnecting.

versions.py     versions of the protocol, and who understands whom
frames.py       the kinds of frames, and their bytes
stamps.py       a publication as a frame, stamped by its first broker
stream.py       numbered and acknowledged frames that outlive a connection
addresses.py    addresses of brokers as text
connection.py   one connection: bytes to frames, batched writes, heartbeats
call.py         calling a broker: Hello, and its Welcome
probe.py        asking a broker for its name, to measure the round trip
backoff.py      how long to wait between attempts
supervision.py  loops that survive errors
"""
