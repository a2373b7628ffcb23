"""A small HTTP framework: operations as values, served and called with checked types.

operations.py   an operation: path, types of request and answer
errors.py       errors: the one form of their answers, and the exception at both ends
application.py  operations and their handlers as a web application
openapi.py      its description: /openapi.json, /docs
serving.py      an application on a port
http_client.py  calls operations of a server
"""
