"""The dashboard: a page that shows a running network and changes it, and the stories it tells.

directory.py      where the servers of a network are
server_calls.py   calls them, with few connections and little patience
gatherer.py       asks them again and again while a page is open
overviews.py      what they say, as the rows of the page; pure
figure_series.py  figures over the last minutes; pure
streams.py        server-sent events, limited for each page
tails.py          publications that match a filter, sampled
actions.py        drain, move, pause ...: what would be done, and what was
table_questions.py  subscriptions of all brokers, and who matches a record
stories.py        the way of a publication from broker to broker, and why it ends
live_stories.py   ... of a live network
client_stories.py where a client is, what it has lost, and who moved it
lab_views.py      experiments and their verdicts
page_serving.py   the page, operations and streams as a web application, and who may ask
dashboard.py      all of this for a network that runs
recorded_trace.py a trace that can be shown at any moment of it
replaying.py      plays it
recorded_stories.py the way of one publication in a trace
static/           the page: HTML, CSS and ES modules, without a build step
"""
