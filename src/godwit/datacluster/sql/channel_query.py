"""The SELECT of a channel, parsed and checked: every part of it is understood, or it is refused.

    text --> NEW marked --> tree --> only known nodes --> names resolved --> CheckedQuery

Spark never gets the user's text.  The query that runs is generated from the checked tree, by
rewriting.py.  Parameters become columns of the subscriptions, `_s`.

`NEW dataset` stands after FROM or JOIN and means the records since the channel's last execution.
With several NEW datasets, each means just that: records that are new in different executions are
never joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import NAME_LENGTH_MAX, Dataset
from godwit.datacluster.sql.expressions import DIALECT, column
from godwit.datacluster.sql.safe_sql import AGGREGATES, check_allowed
from godwit.errors import UsageError

#: The relation of the subscriptions: a row each, with the id and the arguments as columns.
SUBSCRIPTIONS = "_s"
SUBSCRIPTION = "_subscription"
NEW_PREFIX = "_new_"
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{NAME_LENGTH_MAX - 1}}}\Z")


class Source(msgspec.Struct, frozen=True):
    """A dataset that a query reads: all its records, or the new ones."""

    dataset: str
    is_new: bool

    @property
    def view(self) -> str:
        """Its name in the tree."""
        return (NEW_PREFIX if self.is_new else "") + self.dataset.lower()


class CheckedQuery(msgspec.Struct, frozen=True):
    tree: exp.Select
    sources: tuple[Source, ...]
    columns: tuple[str, ...]
    """Columns of a result, as the user spelled them."""

    schema: Mapping[str, Mapping[str, str]]
    """Types of columns, by relation and column in the tree."""


def check(channel: Channel, dataset: Callable[[str], Dataset]) -> CheckedQuery:
    """Parse and check the query of a channel; `dataset` looks up definitions."""
    try:
        tree = _tree(channel.query)
        _without_ctes(tree)
        sources, known = _sources(tree, dataset)
        _check_parameters(tree, channel)
        schema: dict[str, dict[str, str]] = {
            source.view: {c.name.lower(): c.type.value for c in known[source.dataset].columns}
            for source in sources
        }
        spelled = _spellings(tree, known.values())
        qualified = qualify(tree, schema={**schema}, dialect=DIALECT, validate_qualify_columns=True)
    except RecursionError:
        raise UsageError("the query is nested too deeply") from None
    except SqlglotError as error:
        raise UsageError(f"the query cannot be read: {_sentence(error)}") from None
    assert isinstance(qualified, exp.Select)
    names = [_output_name(item, spelled) for item in qualified.expressions]
    for place, name in enumerate(names):
        if name.lower() in [earlier.lower() for earlier in names[:place]]:
            raise UsageError(f"two columns are named {name}: rename one of them with AS")
    _check_aggregation(qualified)
    _bind(qualified)
    if channel.parameters:
        schema[SUBSCRIPTIONS] = {p.name.lower(): p.type.value for p in channel.parameters}
        schema[SUBSCRIPTIONS][SUBSCRIPTION] = "BIGINT"
    return CheckedQuery(qualified, tuple(sources), tuple(names), schema)


# -- reading -----------------------------------------------------------------------------------


def _tree(text: str) -> exp.Select:
    statements = sqlglot.parse(_with_new_marked(text), read=DIALECT)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise UsageError("the query of a channel must be one SELECT")
    tree = statements[0]
    check_allowed(tree)
    for select in tree.find_all(exp.Select):
        if select.args.get("from_") is None:
            raise UsageError("every SELECT of a channel needs FROM")
        if select is not tree and (select.args.get("limit") or select.args.get("order")):
            raise UsageError("ORDER BY and LIMIT are allowed only at the end of a channel's query")
    if bool(tree.args.get("limit")) != bool(tree.args.get("order")):
        raise UsageError("ORDER BY and LIMIT need each other: the result is the first n rows")
    return tree


def _with_new_marked(text: str) -> str:
    """`FROM NEW reports` becomes `FROM _new_reports AS reports`, unless it has an alias."""
    tokens = sqlglot.tokenize(text, read=DIALECT)
    parts: list[str] = []
    end = 0
    for place, token in enumerate(tokens):
        is_name = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if is_name and not _NAME.match(token.text):
            raise UsageError(
                f"{token.text[:64]!r} is not a name: a letter, then letters, digits or _, at most"
                f" {NAME_LENGTH_MAX} in all"
            )
        follows = place > 0 and tokens[place - 1].token_type in (TokenType.FROM, TokenType.JOIN)
        if not (follows and token.text.upper() == "NEW" and place + 1 < len(tokens)):
            continue
        name = tokens[place + 1]
        if name.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            alias = "" if _has_alias(tokens, place + 2) else f" AS {name.text}"
            parts += [text[end : token.start], NEW_PREFIX, name.text, alias]
            end = name.end + 1
    return "".join([*parts, text[end:]])


def _has_alias(tokens: list[sqlglot.Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].token_type in (
        TokenType.ALIAS,
        TokenType.VAR,
        TokenType.IDENTIFIER,
    )


def _without_ctes(tree: exp.Select) -> None:
    """Replace each use of `WITH x AS (...)` by the query, in the order of definition."""
    for select in list(tree.find_all(exp.Select)):
        clause = select.args.get("with_")
        if clause is None:
            continue
        select.set("with_", None)
        ctes = clause.expressions
        for place, cte in enumerate(ctes):
            for user in [*(later.this for later in ctes[place + 1 :]), select]:
                for table in list(user.find_all(exp.Table)):
                    if table.name.lower() == cte.alias.lower():
                        table.replace(cte.this.copy().subquery(table.alias or cte.alias))


def _sources(
    tree: exp.Select, dataset: Callable[[str], Dataset]
) -> tuple[list[Source], dict[str, Dataset]]:
    sources: set[Source] = set()
    known: dict[str, Dataset] = {}
    for table in tree.find_all(exp.Table):
        is_new = table.name.startswith(NEW_PREFIX)
        found = dataset(table.name.removeprefix(NEW_PREFIX))
        if is_new and found.is_static:
            raise UsageError(f"dataset {found.name} is static and has no new records: remove NEW")
        known[found.name] = found
        sources.add(Source(found.name, is_new))
    if not any(source.is_new for source in _driving(tree)):
        raise UsageError(
            "a channel needs NEW before a dataset after FROM or JOIN: results come from new records"
        )
    return sorted(sources, key=lambda source: source.view), known


def _driving(tree: exp.Select) -> Iterator[Source]:
    """Datasets joined such that every result has a record of each."""
    joins = [join for join in tree.args.get("joins") or [] if not join.side]
    for item in [tree.args["from_"].this, *(join.this for join in joins)]:
        if isinstance(item, exp.Table):
            name = item.name
            yield Source(name.removeprefix(NEW_PREFIX), name.startswith(NEW_PREFIX))
        elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
            yield from _driving(item.this)


# -- checking ----------------------------------------------------------------------------------


def _check_parameters(tree: exp.Select, channel: Channel) -> None:
    declared = {parameter.name.lower(): parameter.name for parameter in channel.parameters}
    used = set()
    for marker in tree.find_all(exp.Placeholder):
        name = str(marker.this or "?")
        if name.lower() not in declared:
            raise UsageError(f"the channel has no parameter :{name}")
        marker.set("this", name.lower())
        used.add(name.lower())
    if unused := sorted(declared.keys() - used):
        raise UsageError(f"the query does not use the parameter :{declared[unused[0]]}")


def _spellings(tree: exp.Select, datasets: Iterable[Dataset]) -> dict[str, str]:
    spelled = {c.name.lower(): c.name for d in datasets for c in d.columns}
    return spelled | {item.alias_or_name.lower(): item.alias_or_name for item in tree.expressions}


def _output_name(item: exp.Expr, spelled: Mapping[str, str]) -> str:
    name = item.alias_or_name
    if not _NAME.match(name):
        raise UsageError(f"give {item.unalias().sql(dialect=DIALECT)[:60]} a name with AS")
    return spelled.get(name.lower(), name)


def _check_aggregation(tree: exp.Select) -> None:
    """In SQL an aggregate without GROUP BY has a row even if no record was found."""
    in_from = [item.this for item in tree.find_all(exp.Subquery) if _stands_in_from(item)]
    for select in [tree, *in_from]:
        has_aggregate = any(
            node.find_ancestor(exp.Select) is select for node in select.find_all(*AGGREGATES)
        )
        if has_aggregate and not select.args.get("group"):
            raise UsageError(
                "an aggregate in a channel needs GROUP BY (perhaps of a parameter): without it,"
                " every subscription would have a result at every execution"
            )


def _stands_in_from(item: exp.Subquery) -> bool:
    return isinstance(item.parent, exp.From | exp.Join)


def _bind(tree: exp.Select) -> None:
    for marker in list(tree.find_all(exp.Placeholder)):
        marker.replace(column(str(marker.this), SUBSCRIPTIONS))


def _sentence(error: Exception) -> str:
    """The first line of a message, without the parser's colours."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", str(error).strip().splitlines()[0])
    line = line.partition(" Line")[0].rstrip(
        "."
    )  # Its columns are those of the text with NEW marked.
    return line.replace("could not be resolved", "is unknown or ambiguous")
