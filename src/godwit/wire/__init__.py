"""What clients and brokers say to each other on a connection, and how it survives one.

frames.py       the kinds of frames, and their bytes
stream.py       numbered and acknowledged frames that outlive a connection
connection.py   one connection: bytes in, frames out, batched writes, heartbeats
"""
