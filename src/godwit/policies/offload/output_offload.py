"""Output offload: subscriptions that the acceptor covers move first, then others.

Paper    Cheung, thesis 4.3.3, algorithms 2 to 4.
Words    Phase-I, types I to III, Phase-II -> `OffloadPhase`; ignoreSet -> groups that were dropped.

    Phase I   groups whose publications the acceptor receives already: no new input for it
              I    all its clients can go, and the offloader's input falls
              II   its input would fall, but not all can go
              III  its input does not fall even if all go
    Phase II  the others: the acceptor's input rises

Claim    The same plan as algorithms 2 to 4, which compute all reports again after each step,
         without doing so (report_pools.py): n log n.  Phase II ends when the input utilisations
         meet, so that the input offload has nothing to move back, unless the offloader's output is
         overloaded.

Departs  1. If phase II moves nothing, the plan is complete: phase I had ended before, and nothing
            has changed since (E8).
         2. In phase I the types are used in order, but a type without a report that improves the
            balance counts as empty.  As printed, one group of type I that is too heavy to move
            would keep all groups of types II and III from being considered.
         3. Phase II goes back to phase I if its choice made a group covered that was not; the
            thesis asks if the choice had children in the poset.  Children that were covered before
            change nothing in phase I, and a group may be covered by several choices together.
         4. Balanced inputs end phase II only if the acceptor's input utilisation exceeds the local
            ratio trigger.  Below it no broker starts an input session, whatever the difference is;
            with a light input on both sides, the rule would forbid phase II for ever.
         5. The inputs are balanced also if the acceptor's is the higher one.
Tested   tests/policies/offload/test_output_offload.py, tests/policies/offload/test_plain.py.
"""

from __future__ import annotations

from enum import IntEnum

from godwit.policies.offload.report_cards import (
    INPUTS_BALANCED,
    Offloading,
    OffloadPlan,
    ReportCard,
)
from godwit.policies.offload.report_pools import ReportPools


class OffloadPhase(IntEnum):
    """The lists of reports; those of phase I in the order of their use."""

    TYPE_I = 0
    TYPE_II = 1
    TYPE_III = 2
    PHASE_II = 3


#: Phase I, in the order of use.
TYPES = (OffloadPhase.TYPE_I, OffloadPhase.TYPE_II, OffloadPhase.TYPE_III)


class OutputOffload:
    def __init__(self, offloading: Offloading) -> None:
        self._offloading = offloading
        self._pools = ReportPools(offloading, self._phase, len(OffloadPhase))

    def plan(self) -> OffloadPlan:
        offloading = self._offloading
        self._run_phase_1()
        while not offloading.is_done:
            if self._inputs_are_balanced:
                waiting = self._pools.best(OffloadPhase.PHASE_II)
                return offloading.plan(INPUTS_BALANCED if waiting else None)
            if not self._run_phase_2():
                break
            self._run_phase_1()
        return offloading.plan()

    def _phase(self, report: ReportCard) -> OffloadPhase:
        if not report.is_covered:
            return OffloadPhase.PHASE_II
        if not report.saved_bits:
            return OffloadPhase.TYPE_III
        is_all = report.k == self._offloading.traffic.clients[report.group]
        return OffloadPhase.TYPE_I if is_all else OffloadPhase.TYPE_II

    def _run_phase_1(self) -> None:
        while not self._offloading.is_done:
            found = (self._pools.best(number) for number in TYPES)
            report = next((report for report in found if report is not None), None)
            if report is None:
                break
            self._pools.take(report)

    def _run_phase_2(self) -> bool:
        """Whether something moved."""
        moved = False
        while not self._offloading.is_done and not self._inputs_are_balanced:
            report = self._pools.best(OffloadPhase.PHASE_II)
            if report is None:
                break
            moved = True
            if self._pools.take(report):
                break  # Back to phase I.
        return moved

    @property
    def _inputs_are_balanced(self) -> bool:
        """The rule against oscillation: whether phase II must end."""
        offloading = self._offloading
        if offloading.overloaded:
            return False
        trigger = offloading.settings.local_ratio_trigger
        if offloading.pair.remote.input_utilisation <= trigger:
            return False
        return offloading.pair.input_difference(0.0, 0.0, 0, 0.0) <= offloading.threshold
