"""Nemesis: live networks of broker processes, and faults against them from outside.

One seed is one run: a random tree of brokers, clients that advertise, subscribe, publish, move and
crash, and faults.  It is judged by the oracle and by what clients were told.

fault_kinds.py      what can go wrong, and how often
nemesis_plan.py     the plan of a run, drawn from its seed
tcp_proxy.py        a proxy that fails as networks do
clocks.py           clocks that are set back and forth
broker_fleet.py     broker processes, with proxies for every link and for clients
memory_fleet.py     ... and brokers in memory instead
journal.py          what happened, and what clients were told
lives.py            one life of a client, from connecting to a crash
people.py           a client through all its lives
outages.py          makes the faults happen
patience.py         time-outs that a busy machine makes longer
judgement.py        whether what happened was promised
gap_rule.py         ... also if nothing was published
nemesis_run.py      one run
memory_run.py       ... in memory, on a virtual clock
service_run.py      one run in which the data cluster and the coordinator fail
service_outages.py  makes them fail
channel_readers.py  subscribers to a channel that check what they receive
seed_process.py     a run as a process of its own
seeds.py            many runs
"""
