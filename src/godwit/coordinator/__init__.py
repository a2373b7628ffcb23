"""The broker coordination server (BCS): tells users where to go, and keeps brokers balanced.

registry.py   brokers and users; where a newcomer goes (stage 1)
situation.py  what was reported, as the arrays that planning works on
deciding.py   what to do about a situation (stages 2 and 3), with hold times
rounds.py     one plan at a time, carried out in steps
core.py       all of it behind one door: stimuli in, answers and changes out; no I/O, no clock
records.py    what is remembered, as changes
state.py      ... on the disk
carrying.py   asking brokers to move their clients
metrics.py    figures for Prometheus
settings.py   what can be set
server.py     the process

planning_on_spark.py  a shuffle of more subscribers than fit one machine
"""
