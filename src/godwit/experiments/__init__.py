"""The experiments, by name.  Each folder declares one, `EXPERIMENT`; lab/ runs it.

static_tree/         the tree without any policy, the baseline for others
broker_model/        one broker against queueing theory
covering/            what covering saves
placement/           what the next four, about POP and GRAPE, share
grape_enterprise/    a few subscribers want everything and sit together
grape_random/        subscribers are mixed at random
grape_weights/       what a weight between load and delay buys
placement_sampling/  how many publications to trace before deciding
bad_simulation/      staged load balancing in virtual time
bad_prototype/       staged load balancing of the emergency scenario, simulated and live
balance/             what the next eight, about load balancing, share
balance_local/       a star of edge brokers, on four platforms
balance_random/      the baseline: subscribers are picked at random
balance_churn/       subscribers come and go
balance_edges/       more edge brokers
balance_global/      a chain of clusters
balance_clusters/    more clusters
press_accuracy/      estimates against what comes true
offload_cost/        memory and time of a decision
allocation/               what the next ten, about broker allocation, share
allocation_homogeneous/   how few of 80 equal brokers will do
allocation_heterogeneous/  the same with brokers of three sizes
allocation_large/         400 and 1,000 brokers
allocation_large_plans/   the same, plans only
allocation_steps/         what clustering, a new tree and moved publishers contribute
allocation_forecast/      plans for traffic that they were not made from
allocation_capacity/      which capacity of brokers explains which claim
cram_closeness/           the metric by which CRAM clusters
cram_vectors/             how long bit vectors must be
cram_cost/                what making a plan costs
mesh/                what the next five, about the mesh overlay, share
mesh_paths/          how many paths there are, how long publications travel
mesh_forwarders/     brokers that only forward, and traffic
mesh_cost/           what more links cost a broker
mesh_throughput/     saturated brokers
mesh_congestion/     slow uplinks
clusters/                 what the next three, about cluster-based publish/subscribe, share
clusters_load/            clusters, a tree and a hash table
clusters_balancing/       brokers that hand load to their mates
clusters_optimum/         the number of clusters with the least traffic
watched.py           a simulation with a trace and the oracle, as most experiments run theirs

In each folder: experiment.py is the declaration, runs.py plays a case and leaves a trace,
measures.py turns the trace into numbers, claims.py has the claims with their rules, figures.py the
figures.
"""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments import (
    allocation_capacity,
    allocation_forecast,
    allocation_heterogeneous,
    allocation_homogeneous,
    allocation_large,
    allocation_large_plans,
    allocation_steps,
    bad_prototype,
    bad_simulation,
    balance_churn,
    balance_clusters,
    balance_edges,
    balance_global,
    balance_local,
    balance_random,
    broker_model,
    clusters_balancing,
    clusters_load,
    clusters_optimum,
    covering,
    cram_closeness,
    cram_cost,
    cram_vectors,
    grape_enterprise,
    grape_random,
    grape_weights,
    mesh_congestion,
    mesh_cost,
    mesh_forwarders,
    mesh_paths,
    mesh_throughput,
    offload_cost,
    placement_sampling,
    press_accuracy,
    static_tree,
)
from godwit.lab.declaration import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        static_tree,
        broker_model,
        covering,
        grape_enterprise,
        grape_random,
        grape_weights,
        placement_sampling,
        bad_simulation,
        bad_prototype,
        balance_local,
        balance_random,
        balance_churn,
        balance_edges,
        balance_global,
        balance_clusters,
        press_accuracy,
        offload_cost,
        allocation_homogeneous,
        allocation_heterogeneous,
        allocation_large,
        allocation_large_plans,
        allocation_steps,
        allocation_forecast,
        allocation_capacity,
        cram_closeness,
        cram_vectors,
        cram_cost,
        mesh_paths,
        mesh_forwarders,
        mesh_cost,
        mesh_throughput,
        mesh_congestion,
        clusters_load,
        clusters_balancing,
        clusters_optimum,
    )
}
