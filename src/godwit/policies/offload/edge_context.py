"""What the parts of the balancer of an edge broker share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Protocol

from godwit.broker.effects import Decision
from godwit.broker.modules import BrokerView, Request
from godwit.content.filters import Filter
from godwit.policies.offload.alarms import Alarms
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.detection import utilisation_max
from godwit.policies.offload.holds import Holds
from godwit.policies.offload.load_averages import LoadAverages
from godwit.policies.offload.load_status import StatusEvent, StatusMachine
from godwit.policies.offload.mediation_messages import MediationMessage, send
from godwit.policies.offload.settings import BalancingSettings

if TYPE_CHECKING:
    from godwit.policies.offload.press import Sampled
    from godwit.policies.offload.report_cards import OffloadPlan


class Planner(Protocol):
    """Decides which clients to offload."""

    def __call__(
        self,
        action: OffloadAction,
        local: BrokerInfo,
        remote: BrokerInfo,
        remote_css: Sequence[Filter],
        sampled: Sampled,
        settings: BalancingSettings,
        *,
        overloaded: bool,
        random: Random,
    ) -> OffloadPlan: ...


@dataclass(slots=True)
class EdgeContext:
    view: BrokerView
    settings: BalancingSettings
    random: Random
    post: ControlPost
    alarms: Alarms
    status: StatusMachine
    averages: LoadAverages
    planner: Planner
    watch: Callable[[bool], None]
    """Whether the module wants to see every publication."""

    dry_run: bool
    holds: Holds = field(default_factory=Holds)

    @property
    def broker(self) -> str:
        return self.view.broker

    def send(self, to: str, message: MediationMessage) -> list[Request]:
        return send(self.post, self.broker, to, message)

    def report(
        self, action: str, subject: str, target: str, reason: Mapping[str, float | str]
    ) -> Decision:
        return Decision(action, subject, self.broker, target, reason)

    @property
    def is_high(self) -> bool:
        """Whether a utilisation exceeds the lower threshold."""
        threshold = self.settings.lower_overload_threshold
        return utilisation_max(self.averages.info()) > threshold

    def update_availability(self) -> None:
        """Change between OK and N/A, if the load says so."""
        event = StatusEvent.EXCEEDED if self.is_high else StatusEvent.RELIEVED
        if self.status.permits(event):
            self.status.apply(event)

    @property
    def queueing_s(self) -> float:
        """How long a message takes through this broker to a client, by the last ones.

        A request to move, and what the move waits for, pass the queues twice.
        """
        delays = self.view.delays
        return 2 * (
            delays.input_queue_s.value + delays.matching_s.value + delays.to_clients_s.value
        )
