"""A snapshot as a file, and what is refused in it."""

from __future__ import annotations

import msgspec
import pytest
from tests.rehearsal.scenes import publisher, snapshot, subscriber

from godwit.errors import UsageError
from godwit.policies.placement.settings import GrapeSettings
from godwit.rehearsal.network_snapshot import check_snapshot, decode_snapshot


def test_a_snapshot_is_read_as_it_was_written() -> None:
    one = msgspec.structs.replace(snapshot(), placement=GrapeSettings())
    assert decode_snapshot(msgspec.json.encode(one)) == one


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"{", "not a snapshot"),
        (b"[]", "not a snapshot"),
        (b"\xff", "not a snapshot"),
        (b'{"links": []}', "missing required field"),
    ],
)
def test_another_document_is_refused(document: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        decode_snapshot(document)


def test_a_client_at_an_unknown_broker_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'eve' is at 'B9'"):
        check_snapshot(snapshot([publisher("paul", "B1"), subscriber("eve", "B9")]))


def test_a_client_that_is_there_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="two clients with the name 'bob'"):
        check_snapshot(snapshot([subscriber("bob", "B1"), subscriber("bob", "B2")]))


def test_a_link_to_an_unknown_broker_is_refused() -> None:
    wrong = msgspec.structs.replace(snapshot(), links=(("B1", "B2"), ("B2", "B9")))
    with pytest.raises(UsageError, match="no broker 'B9'"):
        check_snapshot(wrong)
