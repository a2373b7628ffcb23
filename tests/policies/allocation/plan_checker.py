"""What a plan must be, computed from the JSON documents alone: by routing each publication.

Independent of the planner: profiles are sets of ids, the tree is a dictionary, and a publication is
sent over each link towards the subscribers that received it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

Document = dict[str, Any]
NEAR = 1e-6


def received_ids(document: Document) -> tuple[dict[str, range], dict[str, dict[str, set[int]]]]:
    """The window of each publisher, and the ids that each subscription received in it."""
    length = document.get("vector_length", 1_280)
    windows = {}
    for publisher in document["publishers"]:
        name, last = publisher["id"], publisher["last_id"]
        firsts = [
            subscription["first_id"][name]
            for subscription in document["subscriptions"]
            if name in subscription.get("bits", {})
        ]
        first = publisher.get("first_id", min(firsts, default=last + 1))
        windows[name] = range(max(first, last - length + 1), last + 1)
    found: dict[str, dict[str, set[int]]] = {}
    for subscription in document["subscriptions"]:
        found[subscription["id"]] = {
            name: {
                subscription["first_id"][name] + i
                for i, bit in enumerate(text)
                if bit == "1" and subscription["first_id"][name] + i in windows[name]
            }
            for name, text in subscription.get("bits", {}).items()
            if name in windows
        }
    return windows, found


class RoutedPlan:
    """The loads that a plan causes."""

    def __init__(self, document: Document, plan: Document) -> None:
        self.input_per_s: defaultdict[str, float] = defaultdict(float)
        self.output_per_s: defaultdict[str, float] = defaultdict(float)
        self.output_bytes_s: defaultdict[str, float] = defaultdict(float)
        self._plan = plan
        self._neighbours: dict[str, list[str]] = {each["id"]: [] for each in plan["brokers"]}
        for child, parent in plan["links"]:
            self._neighbours[child].append(parent)
            self._neighbours[parent].append(child)
        hops = deliveries = 0.0
        windows, received = received_ids(document)
        clients: dict[tuple[str, str], list[str]] = {}
        for subscription in document["subscriptions"]:
            client = subscription.get("client")
            key = ("subscription", subscription["id"]) if client is None else ("client", client)
            clients.setdefault(key, []).append(subscription["id"])
        for publisher in document["publishers"]:
            name = publisher["id"]
            home = plan["publishers"][name]
            self.input_per_s[home] += publisher["rate_per_s"]
            window = windows[name]
            if not window:
                continue
            rate = publisher["rate_per_s"] / len(window)
            size = publisher["bandwidth_bytes_s"] / len(window)
            for number in window:
                wanted: Counter[str] = Counter()  # One copy for each client.
                for members in clients.values():
                    if any(number in received[member].get(name, ()) for member in members):
                        wanted[plan["assignment"][members[0]]] += 1
                for broker, copies in wanted.items():
                    self._send(broker, copies * rate, copies * size)
                for sender, receiver, distance in self._crossed(home, wanted):
                    self._send(sender, rate, size)
                    self.input_per_s[receiver] += rate
                    hops += distance * wanted[receiver] * rate
                deliveries += sum(wanted.values()) * rate
        self.mean_hops = hops / deliveries if deliveries else 0.0

    def _send(self, broker: str, rate: float, size: float) -> None:
        self.output_per_s[broker] += rate
        self.output_bytes_s[broker] += size

    def _crossed(self, home: str, wanted: Counter[str]) -> list[tuple[str, str, int]]:
        """The links on the ways from `home` to the brokers that want it."""
        found = []

        def visit(broker: str, came_from: str, distance: int) -> bool:
            is_wanted = broker in wanted
            for other in self._neighbours[broker]:
                if other != came_from and visit(other, broker, distance + 1):
                    found.append((broker, other, distance + 1))
                    is_wanted = True
            return is_wanted

        visit(home, "", 0)
        return found


def check_plan(document: Document, plan: Document, *, within_capacity: bool) -> None:
    """`within_capacity`: whether no broker may be above what it can do."""
    names = {broker["id"] for broker in document["brokers"]}
    kept = [broker["id"] for broker in plan["brokers"]]
    assert len(set(kept)) == len(kept)
    assert sorted([*kept, *plan["released"]]) == sorted(names)
    _check_tree(plan, kept)
    subscriptions = document["subscriptions"]
    assert sorted(plan["assignment"]) == sorted(each["id"] for each in subscriptions)
    assert sorted(plan["publishers"]) == sorted(each["id"] for each in document["publishers"])
    assert set(plan["assignment"].values()) | set(plan["publishers"].values()) <= set(kept)
    homes: dict[str, str] = {}
    for subscription in subscriptions:
        home = plan["assignment"][subscription["id"]]
        if subscription.get("client") is not None:
            assert homes.setdefault(subscription["client"], home) == home, "a client is split"
            assert plan["clients"][subscription["client"]] == home
    for publisher in document["publishers"]:
        if publisher.get("client") in homes:
            assert plan["publishers"][publisher["id"]] == homes[publisher["client"]]
    _check_loads(document, plan, within_capacity=within_capacity)


def _check_tree(plan: Document, kept: list[str]) -> None:
    parents = dict(plan["links"])
    assert plan["root"] in kept
    assert len(parents) == len(plan["links"]) == len(kept) - 1
    assert set(parents) == set(kept) - {plan["root"]}
    for name in kept:
        steps = 0
        while name != plan["root"]:
            name, steps = parents[name], steps + 1  # noqa: PLW2901
            assert steps < len(kept), "a cycle"


def _check_loads(document: Document, plan: Document, *, within_capacity: bool) -> None:
    routed = RoutedPlan(document, plan)
    assert plan["mean_hops"] == pytest.approx(routed.mean_hops, rel=NEAR, abs=NEAR)
    capacities = {broker["id"]: broker for broker in document["brokers"]}
    held = Counter(plan["assignment"].values())
    links = Counter(parent for _, parent in plan["links"])
    for broker in plan["brokers"]:
        name, can = broker["id"], capacities[broker["id"]]
        arriving, sent = routed.input_per_s[name], routed.output_bytes_s[name]
        assert broker["subscriptions"] == held[name]
        assert broker["input_per_s"] == pytest.approx(arriving, rel=NEAR, abs=NEAR)
        assert broker["output_bytes_s"] == pytest.approx(sent, rel=NEAR, abs=NEAR)
        messages = arriving + routed.output_per_s[name]
        assert broker["messages_per_s"] == pytest.approx(messages, rel=NEAR, abs=NEAR)
        if can["output_bandwidth_bytes_s"]:
            utilisation = sent / can["output_bandwidth_bytes_s"]
            assert broker["utilisation"] == pytest.approx(utilisation, rel=NEAR, abs=NEAR)
        delay_s = can["matching_delay_base_s"] + can["matching_delay_per_subscription_s"] * (
            held[name] + links[name]
        )
        if delay_s > NEAR:
            assert broker["matching_utilisation"] == pytest.approx(
                arriving * delay_s, rel=NEAR, abs=NEAR
            )
        if within_capacity:
            assert sent < can["output_bandwidth_bytes_s"] or sent == 0
            assert arriving * delay_s <= 1 + NEAR
    if within_capacity:
        assert plan["lower_bound_brokers"] <= len(plan["brokers"])
        total = sum(broker["input_per_s"] for broker in plan["brokers"])
        assert plan["lower_bound_traffic_per_s"] <= total * (1 + NEAR)
