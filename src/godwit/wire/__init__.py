"""What clients and brokers say to each other on a connection, and how it survives one.

frames.py       the kinds of frames, and their bytes
stamps.py       a publication as a frame, stamped by its first broker
stream.py       numbered and acknowledged frames that outlive a connection
addresses.py    where a broker listens, as text
call.py         calling a broker: hello, and its welcome
connection.py   one connection: bytes in, frames out, batched writes, heartbeats
"""
