"""One broker as a state machine without I/O: stimuli in, effects out.

core.py          the broker: `handle(stimulus) -> effects`
stimuli.py       its input
effects.py       its output
sessions.py      which requests of clients are admitted
routing.py       what it asks of an overlay
modules.py       policy modules: what they see and may ask for
module_effects.py  their requests as effects
meters.py        its load, window after window
delays.py        how long messages take through it
parts.py         parts of the network that are missing; clients are told of gaps
parts_by_epoch.py  the same for each epoch of a network that changes its shape
pending_acks.py  what it has received and not acknowledged
explaining.py    what it would do with a publication, and why
invariants.py    R1, R2 and the invariants of the tables, executable
"""
