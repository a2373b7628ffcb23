"""What the experiments about broker allocation (CRAM and others) share.

setups.py          RS1, RS2 and RS3 of the thesis: brokers, capacities, clients
scales.py          the setup in words, and cases
deployed.py        a plan as a simulated network
initial_state.py   what is gathered of MANUAL, simulated
expected_state.py  the same without a simulation
runs.py            gather, plan, deploy, play
plan_notes.py      numbers of a plan in a trace
measures.py        brokers, rates, utilisation, delays, predictions
claims.py          terms of claims: an algorithm beside another, over all sizes
shared_claims.py   claims about equal and unequal brokers alike
large_networks.py  claims and cases with 400 and 1,000 brokers
figures.py         measures over the number of subscriptions
"""
