"""Publishers that turn up elsewhere with the next edition: by hand, and at random on whole trees.

A client that moves in good order asks for nothing else.  One whose brokers or links failed on the
way may turn up anywhere, again and again, while sessions it left behind end in their own time.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.overlay.test_links import Breaking, Request, owner
from tests.overlay.test_tree import adv, sub, unadv, unsub

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, MovedAway, Place
from godwit.broker.stimuli import ClientLeft, Hop, LocalClient, Neighbour
from godwit.content.messages import Advertisement, AdvertisementInEffect, SubscriptionInEffect
from godwit.overlay.tree.routing_tables import AdvertisementEntry
from godwit.overlay.tree.tree_routing import Answers, TreeRouting

B1, B3, B4 = Neighbour("B1"), Neighbour("B3"), Neighbour("B4")
ALICE, PAUL = LocalClient("alice"), LocalClient("paul")
FIRST = adv("paul/a1", "a > 1")
SECOND, THIRD = replace(FIRST, edition=1), replace(FIRST, edition=2)
INTEREST = sub("alice/s1", "a > 5")


def in_effect(advertisement: Advertisement) -> AdvertisementInEffect:
    return AdvertisementInEffect(id=advertisement.id, edition=advertisement.edition)


def at_b2(*, last_hop: Hop) -> TreeRouting:
    """B2 between B1, B3 and B4, where Paul's advertisement came from `last_hop`, in effect."""
    b2 = TreeRouting(Place.of("B2", ["B1", "B3", "B4"]))
    b2.handle(FIRST, last_hop)
    for neighbour in {B1, B3, B4} - {last_hop}:
        b2.handle(in_effect(FIRST), neighbour)
    return b2


# -- by hand, seen from B2 -------------------------------------------------------------------------


def test_the_next_edition_goes_where_the_former_came_from_and_nowhere_else() -> None:
    b2 = at_b2(last_hop=B1)
    assert b2.handle(INTEREST, ALICE) == [Send(B1, INTEREST)]

    assert b2.handle(SECOND, B3) == [Send(B3, INTEREST), Send(B1, SECOND)]
    b2.check()
    assert b2.tables().told == {"B1": ["alice/s1"], "B3": ["alice/s1"], "B4": []}, "for a while"
    assert b2.handle(in_effect(SECOND), B1) == [
        Send(B1, unsub(INTEREST)),
        Send(B3, in_effect(SECOND)),
    ]
    assert b2.tables().advertisements == {"paul/a1": B3}
    b2.check()


def test_the_former_home_of_a_publisher_lets_it_go() -> None:
    b2 = at_b2(last_hop=PAUL)
    assert b2.handle(SECOND, B3) == [MovedAway(PAUL, FIRST.id), Send(B3, in_effect(SECOND))]
    assert b2.tables().advertisements == {"paul/a1": B3}


def test_a_broker_that_has_forgotten_the_former_edition_takes_the_next_for_new() -> None:
    b2 = at_b2(last_hop=B1)
    b2.handle(unadv(FIRST), B1)
    assert b2.handle(SECOND, B3) == [Send(B1, SECOND), Send(B4, SECOND)]


def test_a_former_home_that_is_lost_need_not_confirm() -> None:
    b2 = at_b2(last_hop=B1)
    b2.handle(SECOND, B3)
    assert b2.link_down(B1) == [Send(B3, in_effect(SECOND))]
    b2.check()


def test_a_new_home_that_is_lost_on_the_way_takes_everything_with_it() -> None:
    b2 = at_b2(last_hop=B1)
    b2.handle(INTEREST, ALICE)
    b2.handle(SECOND, B3)
    assert b2.link_down(B3) == [
        Send(B1, unadv(FIRST)),
        Send(B4, unadv(FIRST)),
        Send(B1, unsub(INTEREST)),
        Confirm(ALICE, SubscriptionInEffect(id=INTEREST.id)),
    ]
    b2.check()


def test_who_says_something_older_is_put_right() -> None:
    """B3 turned for an edition that its publisher has given up since."""
    b2 = at_b2(last_hop=PAUL)
    assert b2.handle(THIRD, PAUL) == [Send(n, THIRD) for n in (B1, B3, B4)]
    assert b2.handle(SECOND, B3) == [Send(B3, THIRD)]
    for neighbour in (B1, B4):
        assert b2.handle(in_effect(THIRD), neighbour) == []
    assert b2.handle(in_effect(SECOND), B3) == [], "that is older too"
    assert b2.handle(in_effect(THIRD), B3) == [Confirm(PAUL, in_effect(THIRD))]


def test_a_publisher_may_return_before_it_has_left() -> None:
    b2 = at_b2(last_hop=B1)
    b2.handle(SECOND, B3)
    assert b2.handle(THIRD, B1) == [Send(B3, THIRD)]
    assert b2.handle(in_effect(SECOND), B1) == [], "B1 says so no more"
    assert b2.handle(in_effect(THIRD), B3) == [Send(B1, in_effect(THIRD))]
    assert b2.tables().advertisements == {"paul/a1": B1}
    b2.check()


def test_a_publisher_that_goes_on_at_once_is_left_behind_everywhere() -> None:
    """From B1 by B3 to B4: publications may be under way from both."""
    b2 = at_b2(last_hop=B1)
    b2.handle(INTEREST, ALICE)
    b2.handle(SECOND, B3)
    b2.handle(THIRD, B4)
    assert b2.tables().told == {"B1": ["alice/s1"], "B3": ["alice/s1"], "B4": ["alice/s1"]}
    assert b2.handle(in_effect(THIRD), B3) == [Send(B3, unsub(INTEREST))]
    assert b2.handle(in_effect(SECOND), B1) == [
        Send(B1, unsub(INTEREST)),
        Send(B4, in_effect(THIRD)),
    ]
    b2.check()


# -- at random, on whole trees ---------------------------------------------------------------------


class Moving(Breaking):
    """A harness in which links break, and publishers turn up anywhere."""

    def __init__(self, seed: int, routing: type[TreeRouting] = TreeRouting) -> None:
        super().__init__(seed, routing)
        self.left_behind: set[tuple[str, LocalClient]] = set()
        """Sessions that brokers still keep for publishers that are elsewhere, or gone."""

    def _turn_up(self) -> None:
        if not self.advertisements:
            return
        former = self.random.choice(list(self.advertisements))
        home = self.advertisements.pop(former)
        assert isinstance(former, Advertisement)
        message = replace(former, edition=former.edition + 1)
        new = self.advertisements[message] = self.random.choice(self.topology.brokers)
        self.left_behind.add((home, owner(message)))
        self.left_behind.discard((new, owner(message)))
        self.ask(new, message, owner(message).name)

    def _expire(self) -> None:
        if self.left_behind:
            name, client = self.random.choice(sorted(self.left_behind))
            self.left_behind.remove((name, client))
            self.stimulate(name, ClientLeft(client))

    def step(self) -> None:
        if self.random.random() < 0.15:
            self.random.choice((self._turn_up, self._turn_up, self._expire))()
        else:
            super().step()

    def finish(self) -> None:
        super().finish()
        self.check_sessions()
        while self.left_behind:
            self._expire()
            if self.random.random() < 0.5:
                self.settle()
        self.settle()

    def check_confirmed(self) -> None:
        for message, home in (self.advertisements | self.subscriptions).items():
            assert self._confirmation(message) in self._notices(home, owner(message)), message

    def _notices(self, broker: str, client: LocalClient) -> list[object]:
        return [notice for name, to, notice in self.notices if (name, to) == (broker, client)]

    def _confirmation(self, message: Request) -> object:
        if isinstance(message, Advertisement):
            return in_effect(message)
        return SubscriptionInEffect(id=message.id)

    def check_sessions(self) -> None:
        """An advertisement is held where its publisher is, and by no broker that it has left."""
        home_of = {message.id: home for message, home in self.advertisements.items()}
        for name, broker in self.brokers.items():
            for session in broker.sessions._sessions.values():
                for id in session.advertisements.keys() & home_of.keys():
                    assert home_of[id] == name, f"{name} holds {id}"


def random_run(seed: int, routing: type[TreeRouting] = TreeRouting) -> int:
    """What came of one seed: the number of deliveries, all of them right."""
    run = Moving(seed, routing)
    for _ in range(200):
        run.step()
    run.finish()
    run.check_tables()
    run.check_confirmed()
    return run.check_deliveries()


SEEDS = 120
SEEDS_PER_TEST = 10


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_the_latest_edition_wins_whatever_breaks(first: int) -> None:
    deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        try:
            deliveries += random_run(seed)
        except (AssertionError, KeyError) as error:
            error.add_note(f"the seed is {seed}")
            raise
    assert deliveries > 0, "runs without deliveries prove nothing"


class PutsNobodyRight(TreeRouting):
    """Ignores who says something older."""

    def _put_right(self, entry: AdvertisementEntry, neighbour: Neighbour) -> Answers:
        return []


class KeepsThoseWhoLeft(TreeRouting):
    """Does not let a publisher go that is elsewhere."""

    def _turn(self, entry: AdvertisementEntry, new: Hop) -> Answers:
        return [a for a in super()._turn(entry, new) if not isinstance(a, MovedAway)]


class WaitsForTheLost(TreeRouting):
    """Waits for a former home to confirm, though it is lost."""

    def link_down(self, neighbour: Neighbour) -> Answers:
        left = [entry for entry in self._advertisements if neighbour in entry.leaving]
        for entry in left:
            entry.awaited[neighbour] += 1
        answers = super().link_down(neighbour)
        return [a for a in answers if not isinstance(a, Confirm)] if left else answers


class ForgetsWhereItWas(TreeRouting):
    """Takes back what it told the new home of a withdrawn advertisement, not the former one."""

    def _withdraw(self, entry: AdvertisementEntry) -> Answers:
        for neighbour in list(self._links):
            self._advertisements.settle(entry, neighbour)
        return super()._withdraw(entry)


class WithdrawsOneWay(TreeRouting):
    """Does not tell the hop that a withdrawal came from, though it told it of the advertisement."""

    def _withdraw(self, entry: AdvertisementEntry) -> Answers:
        entry.has_turned = False
        return super()._withdraw(entry)


@pytest.mark.parametrize(
    "broken",
    [
        PutsNobodyRight,
        KeepsThoseWhoLeft,
        WaitsForTheLost,
        ForgetsWhereItWas,
        WithdrawsOneWay,
    ],
)
def test_random_editions_notice_a_broken_router(broken: type[TreeRouting]) -> None:
    for seed in range(200):
        try:
            random_run(seed, broken)
        except AssertionError:
            return
    pytest.fail(f"200 random runs did not notice that a router {broken.__doc__}")
