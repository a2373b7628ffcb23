"""The content language: records, filters over them, and the messages that carry both.

    values --> regions --> predicates --> filters --> covering, poset, messages
                              text ----------^

values.py            values and records: what is allowed, canonical forms, bytes
regions.py           sets of values: intervals and exceptions
predicates.py        one condition on one attribute
filters.py           a conjunction of predicates: matching, covering, overlap
scanner.py           tokens of the text form
text.py              filters and records from text, and back
explanation.py       why a filter does or does not match a record
covering.py          the maximal filters of a set
poset.py             filters ordered by covering
wired.py             the form of all messages on a wire
messages.py          what clients and brokers exchange
channel_messages.py  ... about channels
link_messages.py     ... about links, and what is missing of the network
mesh_messages.py     ... between the brokers of a mesh
geography.py         places on earth, and distances between them

Pure, and independent of brokers: all other packages build on this one.
"""
