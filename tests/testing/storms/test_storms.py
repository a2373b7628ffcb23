"""Storms: nothing is lost whatever fails, and a network that loses something is noticed.

`godwit replay SEED --faults` replays one; `godwit replay 0 --until 2000 --faults` is the long run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import Send
from godwit.broker.pending_acks import PendingAcks, Settled
from godwit.broker.stimuli import Neighbour
from godwit.content.messages import Present, ResyncScope
from godwit.migration.move import Move, Order, Phase, ToNew
from godwit.overlay.tree.presence import Presence
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.runtime.port import LinkPort, Port
from godwit.runtime.recovery import Recovery
from godwit.testing.storms.storm import storm
from godwit.testing.storms.storm_checks import delivery_errors
from godwit.testing.virtual_time import run_in_virtual_time

SEEDS, SEEDS_PER_TEST = seeds(30, whole=200), 10
#: A mutant is to be noticed within so many storms from where it was noticed when this was written.
MUTANT_SEEDS = 10

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_nothing_is_lost_in_a_storm(first: int) -> None:
    storms = [storm(seed) for seed in range(first, first + SEEDS_PER_TEST)]
    assert not [str(each) for each in storms if not each.is_flawless]
    assert sum(each.deliveries for each in storms) > 1_000
    assert sum(each.moved for each in storms) > 5
    assert all(each.happened for each in storms)


def test_a_seed_is_a_storm() -> None:
    assert str(storm(3)) == str(storm(3))


# -- what a storm would notice ---------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]


def _acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    handled = PendingAcks.handled

    def mutated(
        self: PendingAcks[Port], source: Port, received: int, size_bytes: int, _: object
    ) -> Settled[Port]:
        return handled(self, source, received, size_bytes, {})

    patch.setattr(PendingAcks, "handled", mutated)


def _keep_nothing_for_a_neighbour(patch: pytest.MonkeyPatch) -> None:
    restart = LinkPort.restart

    def mutated(self: LinkPort, stream_id: str) -> None:
        restart(self, stream_id)
        self.kept = []

    patch.setattr(LinkPort, "restart", mutated)


def _pass_on_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Recovery, "is_over", lambda *_, **__: True)


def _wait_for_no_clients(patch: pytest.MonkeyPatch) -> None:
    recovering = TreeRouting.recovering

    def mutated(self: TreeRouting) -> list[object]:
        return [*recovering(self), *self.clients_returned()]

    patch.setattr(TreeRouting, "recovering", mutated)
    patch.setattr(Recovery, "is_over", lambda *_, is_complete: is_complete)


def _forget_what_a_neighbour_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        TreeRouting, "link_restarted", lambda self, to: [*self.link_down(to), *self.link_up(to)]
    )


def _remember_for_ever(patch: pytest.MonkeyPatch) -> None:
    def mutated(self: TreeRouting, scope: ResyncScope, last_hop: object) -> object:
        self._resync.hear(last_hop, scope)  # type: ignore[arg-type]
        return self._resync.due()

    patch.setattr(TreeRouting, "_on_resync_done", mutated)


def _confirm_before_all_is_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeRouting, "recovering", lambda self: self._resync.begin_all())


def _tell_a_neighbour_its_own_direction(patch: pytest.MonkeyPatch) -> None:
    def mutated(self: Presence, neighbour: Neighbour) -> list[Send]:
        return [Send(neighbour, Present(broker=broker)) for broker in self._direction]

    patch.setattr(Presence, "link_up", mutated)


def _leave_a_broker_that_has_something_for_us(patch: pytest.MonkeyPatch) -> None:
    lose_source = Move.lose_source

    def mutated(self: Move) -> list[Order]:
        if self.phase is not Phase.SWEEPING:
            return lose_source(self)
        return [*self._handed(), *map(ToNew, self._asked_for()), *self._arrive()]

    patch.setattr(Move, "lose_source", mutated)


#: With the first seed to try.
MUTANTS: dict[Mutant, int] = {
    _acknowledge_at_once: 30,
    _keep_nothing_for_a_neighbour: 0,
    _pass_on_at_once: 0,
    _wait_for_no_clients: 0,
    _forget_what_a_neighbour_told: 20,
    _remember_for_ever: 0,
    _tell_a_neighbour_its_own_direction: 0,
    _confirm_before_all_is_known: 280,
    _leave_a_broker_that_has_something_for_us: 176,
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_"))
def test_a_network_that_loses_something_is_noticed(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    first = MUTANTS[mutant]
    assert any(_goes_wrong(seed) for seed in range(first, first + MUTANT_SEEDS))


def _goes_wrong(seed: int) -> bool:
    try:
        return not storm(seed).is_flawless
    except Exception:  # noqa: BLE001  Whatever it is, it is noticed.
        return True


# -- the instruments -------------------------------------------------------------------------------


def test_time_passes_only_when_there_is_nothing_to_do() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        times = []
        for pause_s in (0.0, 1.0, 3600.0):
            await asyncio.sleep(pause_s)
            times.append(loop.time())
        return times

    assert run_in_virtual_time(scenario()) == pytest.approx([0.0, 1.0, 3601.0])


def test_a_deadlock_is_an_error() -> None:
    async def scenario() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock"):
        run_in_virtual_time(scenario())


def test_a_failure_of_a_callback_ends_the_run() -> None:
    async def scenario() -> None:
        asyncio.get_running_loop().call_later(1.0, lambda: 1 / 0)
        await asyncio.sleep(1e9)

    with pytest.raises(ZeroDivisionError):
        run_in_virtual_time(scenario())


def test_what_is_wrong_with_what_was_received() -> None:
    assert delivery_errors([1, 2, 4], [1, 2, 4]) == []
    assert delivery_errors([1, 2], [1, 2, 4], may_miss=1) == []
    assert delivery_errors([1, 2], [1, 2, 4]) == ["lost: [4] of 3"]
    assert delivery_errors([2, 4], [1, 2, 4], may_miss=1) == ["lost: [1] of 3"]
    assert delivery_errors([1, 1, 2], [1, 2]) == ["twice or out of order"]
    assert delivery_errors([2, 1], [1, 2]) == ["twice or out of order"]
    assert delivery_errors([1, 2, 3], [1, 2]) == ["not published, or not subscribed to: [3]"]
