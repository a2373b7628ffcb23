"""The emergency scenario of BAD (BS1), live on this machine.

scenario.py             the parameters, and the town that follows from a seed
emergency_processes.py  the processes: coordinator, brokers, data cluster
live_subscribers.py     subscribers: they log in, walk, subscribe, and record what they receive
pacing.py               the clock of the scenario, which waits until all have subscribed
live_run.py             a whole run, with what the coordinator saw
checking.py             the rows that each subscriber should have received, by plain Python
emergencies_demo.py     progress and the closing tables
"""
