"""CBC: the module of a broker that profiles its clients and answers CROC.

Paper    Cheung, thesis 6.1: the CROC Back-end Component.
Words    BIR, BIA -> cbc_letters.py; subscription profile -> cbc_profiles.py; publisher profile ->
         profile/publisher_profile.py; matching-delay function -> profile/matching_delay.py.
Claim    A bit of a subscription's profile is set if and only if the publication was delivered to
         its client and the subscription matches it.

    publications    each delivery is recorded for the subscriptions it is for; what local publishers
                    send is metered
    windows         each window of the meters is a sample of the matching delay
    gatherings      cbc_gathering.py; an operator begins one at any broker, and fetches its pages

    operator        gather ID SECONDS     begin; who is silent for so long is missing
                    fetch ID RECEIVED     pages before this number have arrived; `held` has others
                    end ID                no more is wanted

Departs  1. CROC is a client of a broker's HTTP operations, not of its publications: what brokers
            say about all clients is for operators, who have the network's secret; and pages are
            fetched when there is room for them (docs/decisions/0025-gathering.md).
         2. A broker before its first complete window has no matching delay: 0 stands for it.
         3. A publisher that starts again is another publisher: its numbers begin anew.
Tested   tests/policies/allocation/test_cbc.py; tests/simulation/test_simulated_gathering.py: equal
         to what clients received in random trees.

B1  Nothing is recorded of control publications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from godwit.broker.modules import BrokerView, PolicyModule, Request, Timer
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import Publication, SubscriptionId, incarnation_of, size_bytes
from godwit.errors import UsageError
from godwit.policies.allocation.cbc_gathering import Gatherings, HeldPages
from godwit.policies.allocation.cbc_letters import read_letter
from godwit.policies.allocation.cbc_pages import (
    BrokerEntry,
    PageEntry,
    PublisherEntry,
    pages,
    subscription_entries,
)
from godwit.policies.allocation.cbc_profiles import DeliveryProfiles, LocalSubscription
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.offload.load_averages import LoadAverages
from godwit.profile.publisher_profile import PublisherMeters

MEASURE = "measure"


class Cbc(PolicyModule):
    name = "cbc"

    def __init__(self, settings: ProfilingSettings | None = None) -> None:
        self._settings = settings or ProfilingSettings()
        self._profiles = DeliveryProfiles(
            vector_length=self._settings.vector_length,
            vectors_max=self._settings.vectors_max,
        )
        self._gatherings = Gatherings(self._own_pages)
        self._meters = PublisherMeters()
        self._publishers: dict[str, str] = {}
        """Local publishers and their incarnations."""

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        self._averages = LoadAverages(view, over_s=view.meters.window_s)
        for each in view.subscriptions():  # It may start late.
            self._profiles.change(each.client, each.id, each.filter)
        return [Timer(MEASURE, now_s + view.meters.window_s)]

    # -- profiles ------------------------------------------------------------------------------

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        if publication.is_control:  # B1
            return ()
        # A broker does this for every publication: no call more than needed.
        if type(last_hop) is LocalClient:
            publisher = incarnation_of(publication)
            if self._publishers.get(publication.publisher) != publisher:
                self._replace(publication.publisher, publisher)
            size = publication.size_bytes or size_bytes(publication)
            self._meters.record(publisher, publication.sequence, size, now_s)
            for hop in destinations:
                if type(hop) is LocalClient:
                    self._profiles.record(publication, publisher, destinations, now_s)
                    break
            return ()
        for hop in destinations:
            if type(hop) is LocalClient:
                publisher = incarnation_of(publication)
                self._profiles.record(publication, publisher, destinations, now_s)
                break
        return ()

    def _replace(self, client: str, publisher: str) -> None:
        """A local client publishes in another incarnation."""
        before = self._publishers.get(client)
        if before is not None:
            self._meters.forget(before)
        self._publishers[client] = publisher

    def on_subscription(
        self, client: str, id: SubscriptionId, filter: Filter | None, now_s: float
    ) -> Iterable[Request]:
        self._profiles.change(client, id, filter)
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        if not self._view.subscriptions_of(client):  # Else it has only stopped to publish here.
            self._profiles.forget(client)
        publisher = self._publishers.pop(client, None)
        if publisher is not None:
            self._meters.forget(publisher)
        return ()

    # -- gatherings ----------------------------------------------------------------------------

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        letter = read_letter(body)
        if letter is None:
            return ()
        return self._gatherings.on_letter(letter, neighbour, self._neighbours(), now_s)

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        if name != MEASURE:
            return self._gatherings.on_timer(name, now_s)
        self._averages.read(now_s)
        self._meters.profiles(now_s)  # So that it forgets what is old.
        return [Timer(MEASURE, now_s + self._view.meters.window_s)]

    def on_command(self, command: str, now_s: float) -> Iterable[Request]:
        try:
            match command.split():
                case ["gather", id, silence_s]:
                    silent_s = float(silence_s)
                    return self._gatherings.begin(id, silent_s, self._neighbours(), now_s)
                case ["fetch", id, received]:
                    return self._gatherings.fetch(id, int(received), now_s)
                case ["end", id]:
                    return self._gatherings.end(id)
        except ValueError:
            pass
        raise UsageError(
            f"CBC knows no command {command!r}; use gather ID SECONDS, fetch ID RECEIVED or end ID"
        )

    def held(self, id: str) -> HeldPages:
        """The pages of a gathering that began here; UsageError if there is none."""
        return self._gatherings.held(id)

    def _neighbours(self) -> list[Neighbour]:
        return list(self._view.neighbours)

    def _own_pages(self, asked: list[Neighbour], now_s: float) -> Iterator[bytes]:
        # What there is now; what a subscription received is read when its page is made.
        subscriptions = self._profiles.subscriptions()
        return pages(self._view.broker, self._entries(asked, subscriptions, now_s))

    def _entries(
        self, asked: list[Neighbour], subscriptions: list[LocalSubscription], now_s: float
    ) -> Iterator[PageEntry]:
        view = self._view
        matching = self._averages.info().matching
        primary = [each for each, kind in view.neighbours.items() if kind is LinkKind.PRIMARY]
        yield BrokerEntry(
            broker=view.broker,
            address=view.address,
            neighbours=tuple(sorted({each.name for each in (*primary, *asked)})),
            missing=tuple(sorted(view.missing_brokers - {view.broker})),
            is_linked=view.has_all_links,
            output_bandwidth_bytes_s=view.output_bandwidth_bytes_s,
            matching_delay_base_s=matching.intercept_s,
            matching_delay_per_subscription_s=matching.slope_s,
            vector_length=self._settings.vector_length,
            vectors_dropped=self._profiles.dropped,
        )
        clients = {publisher: client for client, publisher in self._publishers.items()}
        for id, profile in self._meters.profiles(now_s).items():
            yield PublisherEntry(
                id=id,
                client=clients[id],
                rate_per_s=profile.publications_per_s,
                bandwidth_bytes_s=profile.bytes_per_s,
                first_id=profile.first_id,
                last_id=profile.last_id,
            )
        for each in subscriptions:
            yield from subscription_entries(each.id, each.client, tuple(each.vectors.items()))

    def account(self, now_s: float) -> Mapping[str, object]:
        return {
            "broker": self._view.broker,
            "vector_length": self._settings.vector_length,
            "subscriptions": self._profiles.subscription_count,
            "vectors": self._profiles.count,
            "vectors_max": self._settings.vectors_max,
            "vectors_dropped": self._profiles.dropped,
            "publishers": len(self._publishers),
            "gatherings": self._gatherings.count,
        }


def profiling_modules(
    settings: ProfilingSettings | None = None,
) -> Callable[[str], Sequence[PolicyModule]]:
    """A factory of the module of each broker; of none if profiling is switched off."""
    wanted = settings or ProfilingSettings()
    return lambda _broker: [Cbc(wanted)] if wanted.enabled else []
