"""One broker as a state machine that does no I/O.  Start with core.py."""
