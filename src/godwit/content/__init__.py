"""The content language: values, filters and what can be said about them.

    values --> regions --> predicates --> filters --> covering sets, poset, messages
                              text ----------^

Nothing here knows about brokers.  Everything else in Godwit stands on this package.
"""
