"""Statements for tests that need one kind of them."""

from __future__ import annotations

from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import (
    ChannelStatement,
    CreateChannel,
    DatasetStatement,
    DropChannel,
)


def dataset_statement(text: str) -> DatasetStatement:
    statement = parse(text)
    assert not isinstance(statement, CreateChannel | DropChannel)
    return statement


def channel_statement(text: str) -> ChannelStatement:
    statement = parse(text)
    assert isinstance(statement, CreateChannel | DropChannel)
    return statement
