"""What our HTTP servers and those who call them share.

operations.py   what can be asked: path, types of request and answer, as values
errors.py       what is answered when something is wrong, in one form
answering.py    operations with their handlers as a web application
describing.py   ... which describes itself: /openapi.json, /docs
serving.py      an application on a port
calling.py      asking, from another process
moving.py       POST /move of a broker
subscribing.py  channels over HTTP, at a broker
bcs.py          what brokers, users and the coordinator say to each other
"""
