"""The emergency scenario of BAD (BS1), live on this machine.

scenario.py  who there is, and how it is set
stage.py     the processes: coordinator, brokers, data cluster
people.py    subscribers: they log in, walk about, subscribe, and remember what they are told
playing.py   all of it for a while, watched
checking.py  what everybody should have been told, found out by plain Python
showing.py   progress and the closing table
"""
