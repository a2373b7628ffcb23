"""A broker's part in a change of the network's shape, over HTTP."""

from __future__ import annotations

from godwit.api.epoch_api import CHANGE_EPOCH, READ_EPOCH, ChangeEpoch, change_request
from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import EpochStimulus
from godwit.content.link_messages import NetworkShape
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing, Served, served
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.reshaping_run import AskBroker

CONFLICT = 409


def epoch_operations(node: BrokerNode) -> list[Served]:
    async def read(_request: Nothing) -> EpochStatus:
        return node.epochs.status

    async def change(request: ChangeEpoch) -> EpochStatus:
        try:
            node.epochs.check_fencing(request.fencing)
            return node.epochs.change(request.stimulus)
        except UsageError as error:
            raise RestError(CONFLICT, str(error)) from None

    return [served(READ_EPOCH, read), served(CHANGE_EPOCH, change)]


def ask_over_http(callers: dict[str, HttpClient], shape: NetworkShape, fencing: int) -> AskBroker:
    """Asks brokers at these addresses; for `reshaping_run.carry_out`."""

    async def ask(broker: str, stimulus: EpochStimulus) -> EpochStatus:
        request = change_request(stimulus, shape, fencing)
        try:
            return await callers[broker].call(CHANGE_EPOCH, request)
        except RestError as error:
            if error.status == CONFLICT:
                raise UsageError(str(error)) from None
            raise

    return ask
