"""Terms of claims about the mesh: a strategy beside S0, in one dataset."""

from __future__ import annotations

from collections.abc import Callable

from godwit.experiments.mesh.datasets import BROKERS
from godwit.lab.declaration import Results

Number = Callable[[Results], float]


def of(results: Results, dataset: str, strategy: str) -> Results:
    """The runs of a dataset and a strategy; of the network that both were run in."""
    runs = results.where(dataset=dataset, strategy=strategy)
    smallest = min(int(brokers) for brokers, _ in results.by("brokers"))
    return runs.where(brokers=min(smallest, BROKERS))


def value(name: str, dataset: str, strategy: str) -> Number:
    return lambda results: of(results, dataset, strategy).mean(name)


def saved(name: str, dataset: str, strategy: str) -> Number:
    """The share by which a strategy has less than S0."""

    def share(results: Results) -> float:
        base = of(results, dataset, "S0").mean(name)
        return 1 - of(results, dataset, strategy).mean(name) / base

    return share


def times(name: str, dataset: str, strategy: str) -> Number:
    """How many times as much S0 has."""

    def ratio(results: Results) -> float:
        base = of(results, dataset, "S0").mean(name)
        return base / of(results, dataset, strategy).mean(name)

    return ratio
