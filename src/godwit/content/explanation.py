"""Why a record matches a filter or not: one finding for each predicate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from godwit.content.predicates import Operator, Predicate
from godwit.content.text import format_predicate, format_value
from godwit.content.values import Kind, Record, Value, kind_of


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one predicate on the record's value (None: the attribute is absent)."""

    predicate: Predicate
    value: Value | None
    holds: bool

    def __str__(self) -> str:
        text = format_predicate(self.predicate)
        attribute = self.predicate.attribute
        if self.value is None:
            return f"{text} fails: the event has no {attribute}"
        was = f"{attribute} is {format_value(self.value)}"
        if self.holds:
            return f"{text} holds: {was}"
        kinds = _kinds(self.predicate)
        if kinds and kind_of(self.value) not in kinds:
            return f"{text} fails: {was}, a {kind_of(self.value).value}"
        return f"{text} fails: {was}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The findings for all predicates, in the order they were written."""

    findings: tuple[Finding, ...]

    @property
    def matched(self) -> bool:
        return all(finding.holds for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.holds)

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        shown = self.findings if self.matched else self.failures
        return "\n".join([verdict, *(f"  {finding}" for finding in shown)])


def explain(predicates: Iterable[Predicate], record: Record) -> Explanation:
    return Explanation(tuple(_finding(predicate, record) for predicate in predicates))


def _finding(predicate: Predicate, record: Record) -> Finding:
    value = record.get(predicate.attribute)
    return Finding(predicate, value, value is not None and predicate.constraint.has(value))


def _kinds(predicate: Predicate) -> set[Kind]:
    """The kinds of value that could satisfy `predicate`; empty means any."""
    operand = predicate.operand
    if predicate.operator is Operator.PRESENT:
        return {operand} if isinstance(operand, Kind) else set()
    values = operand if isinstance(operand, tuple) else (operand,)
    return {kind_of(v) for v in values if v is not None and not isinstance(v, Kind)}
