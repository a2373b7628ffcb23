"""Measurements, as ratios to a reference in the same run: `make bench`.

matching.py           the matching index; ranges.py is its workload W2
simulator.py          messages handled by simulated brokers
forwarding.py         a live broker against peers; forwarding_godwit.py, forwarding_raw.py and
                      forwarding_workloads.py are its clients and workloads
peers/                mosquitto and ActiveMQ
traces.py             the cost of a trace, and the speed of metrics over a long one
placement.py          GRAPE's choice of a broker
allocation.py         plans of broker allocation; large_allocation.py on Spark, up to 1,000,000
profiling.py          what it costs a broker to record profiles, and a gathering
planning.py           staged balancing; planning_on_spark.py at full size
ingest.py             records into a dataset
channels.py           executions of channels; channel_latency.py, channel_kills.py end to end
soak.py               steady load with broken connections
moving.py             clients that move under load
draining.py           a broker with many clients is drained, all brokers are restarted, under load
same_numbers.py       compares the numbers of experiments before and after a change
mutants.py            broken versions of Godwit: does nemesis notice them?
versus.py             two checkouts against each other, in turns
report.py             a measurement as a row of a table
usage.py              memory and processor time of processes
"""
