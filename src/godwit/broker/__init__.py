"""One broker as a state machine without I/O: stimuli in, effects out.

core.py          the broker: `handle(stimulus) -> effects`
stimuli.py       its input
effects.py       its output
sessions.py      which requests of clients are admitted
routing.py       what it asks of an overlay
modules.py       policy modules: what they see and may ask for
meters.py        its load, window after window
delays.py        how long messages take through it
parts.py         parts of the network that are missing; clients are told of gaps
pending_acks.py  what it has received and not acknowledged
invariants.py    R1, R2 and the invariants of the tables, executable
"""
