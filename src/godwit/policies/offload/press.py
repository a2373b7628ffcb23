"""TEMPORARY scratch: replaced by the other branch."""

from __future__ import annotations
from dataclasses import dataclass, field
from godwit.broker.stimuli import LocalClient
from godwit.matching.index import MatchingIndex


@dataclass
class Sampled:
    samples: int
    seconds: float
    bytes_by_client: dict
    counts: dict
    subs: dict
    staying: frozenset
    new_bits: dict = field(default_factory=dict)
    ir: float = 0.0


class Press:
    def __init__(self, subscriptions, acceptor_css, *, samples_max, now_s, staying=frozenset()):
        self.max, self.t0 = samples_max, now_s
        self.n = 0
        self.bytes, self.counts = {}, {}
        self.subs = {}
        for s in subscriptions:
            self.subs[s.client] = self.subs.get(s.client, 0) + 1
        self.staying = staying

    def on_publication(self, p, destinations, now_s):
        self.n += 1
        for d in destinations:
            if type(d) is LocalClient:
                self.bytes[d.name] = self.bytes.get(d.name, 0) + p.size_bytes
                self.counts[d.name] = self.counts.get(d.name, 0) + 1
        return self.n >= self.max

    def on_departed(self, client): self.subs.pop(client, None)
    def result(self, now_s):
        sec = max(1e-9, now_s - self.t0)
        return Sampled(
            self.n, sec, self.bytes, self.counts, self.subs, self.staying, ir=self.n / sec
        )
