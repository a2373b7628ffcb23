"""Allocation: the fewest brokers that carry all subscriptions, the tree above them, publishers.

    make_plan(gathered, AllocationSettings(algorithm="cram-iou"))

planner.py                make_plan: from what was gathered to a plan
settings.py               the algorithm and its parameters
gathered.py               what was gathered of a network, as a document
plan.py                   a plan, as a document
plan_writing.py           ... with expected loads, bounds and reasons
gathered_reading.py       checks of what was gathered; the common window of each publisher
packed_profiles.py        profiles as words of bits, and the load they cause
units.py                  what is assigned as a whole: subscribers, clusters of them, brokers below
capacity.py               the capacity test of a broker, and what is missing if all fail
algorithms.py             the algorithms by name

first_fit.py              each unit to the first broker with room
fbf.py                    FBF: in random order
bin_packing.py            BIN PACKING: the heaviest first

cram.py                   CRAM: the closest units are merged as long as all have room
closeness.py              INTERSECT, XOR, IOS and IOU, and their bounds
gif_pool.py               GIFs: units with the same profile
gif_profiles.py           their profiles as matrices
gif_poset.py              which of them covers which
partner_search.py         the closest partner of a GIF
one_to_many.py            a GIF with several that it covers
allocation_test.py        whether a merge leaves room for all

baselines.py              the baselines by name
manual.py                 MANUAL
automatic.py              AUTOMATIC
pairwise.py               PAIRWISE-K and PAIRWISE-N
effort.py                 evaluations and clusters, counted

overlay_tree.py           a tree of brokers and what they serve
overlay_construction.py   the tree, layer by layer
overlay_layers.py         the layers under construction
overlay_optimisations.py  pure forwarders, children taken over, best fit
layer_joining.py          a tree without further brokers
expected_traffic.py       what every broker will receive and send
publisher_placement.py    GRAPE on the finished tree
direct_links.py           trees without brokers that only forward
overload_relief.py        free brokers for what only the finished tree shows
allocation_bounds.py      lower bounds of brokers and traffic
bound_distance.py         why a plan has more brokers than the bound
plan_improvement.py       a better plan by local search
staying.py                a plan that moves fewer clients

cbc.py                    CBC: the module of a broker that profiles its clients and answers CROC
cbc_settings.py           its settings: the table `[profiling]` of network files
cbc_profiles.py           what was delivered for each local subscription
cbc_gathering.py          BIR to the neighbours, BIA back, page by page
cbc_letters.py            the messages: BIR, BIA
cbc_pages.py              answers in pages, and all of them together

Pure: no I/O, no clock; what is random comes from a seed in the settings.
"""
