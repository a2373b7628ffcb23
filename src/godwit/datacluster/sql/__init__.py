"""The SQL of channels: read, checked, and rewritten for all subscriptions at once.

    text --> channel_query --> rewriting, with join_order --> one query that Spark runs

channel_query.py  the SELECT of a channel becomes a checked tree
safe_sql.py       the nodes, clauses and functions that a query may have
rewriting.py      the tree for one subscription becomes the tree for all of them
join_order.py     relations in an order in which each has a key to those before it
join_keys.py      the keys: equalities, places near each other, ranges
grid.py           cells, by which boxes and points are joined where there is no equality
null_on_error.py  operations that can fail give NULL instead
expressions.py    small tools to build trees
"""
