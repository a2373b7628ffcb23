"""Random filters and records over small domains: filters often cover or equal each other."""

from __future__ import annotations

from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Value

CLASSES = ("STOCK", "SPORT")
NAMES = ("A", "AB", "B", "BA")
SIZES = range(6)


class RandomContent:
    def __init__(self, attributes: tuple[str, ...], random: Random) -> None:
        self._attributes = attributes
        self._random = random

    def content(self, advertised: Filter) -> dict[str, Value]:
        draw = self._random
        content: dict[str, Value] = {
            "class": draw.choice(CLASSES),
            "name": draw.choice(NAMES),
            "size": draw.choice(SIZES),
        }
        return {name: content[name] for name in advertised.constraints}

    def filter(self, *, every_attribute: bool) -> Filter:
        """An advertisement names the class and a few attributes; a subscription any of them."""
        draw = self._random
        predicates = []
        if "class" in self._attributes and (every_attribute or draw.random() < 0.8):
            predicates.append(Predicate("class", Operator.EQUAL, draw.choice(CLASSES)))
        if "name" in self._attributes and draw.random() < 0.5:
            predicates.append(self._name_predicate(every_attribute))
        if draw.random() < 0.7 or not predicates:
            predicates += self._size_predicates(every_attribute)
        return Filter(predicates)

    def _name_predicate(self, wide: bool) -> Predicate:
        draw = self._random
        operators = [Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS]
        if wide and draw.random() < 0.7:
            return Predicate("name", Operator.PRESENT)
        if draw.random() < 0.4:
            return Predicate("name", Operator.EQUAL, draw.choice(NAMES))
        return Predicate("name", draw.choice(operators), draw.choice(NAMES)[0])

    def _size_predicates(self, wide: bool) -> list[Predicate]:
        draw = self._random
        if wide and draw.random() < 0.7:
            return [Predicate("size", Operator.PRESENT)]
        low = Predicate(
            "size", draw.choice((Operator.ABOVE, Operator.AT_LEAST)), draw.choice(SIZES)
        )
        high = Predicate(
            "size", draw.choice((Operator.BELOW, Operator.AT_MOST)), draw.choice(SIZES)
        )
        several = Predicate("size", Operator.IN, tuple(draw.sample(SIZES, 3)))
        other = Predicate("size", Operator.NOT_EQUAL, draw.choice(SIZES))
        return draw.choice(([low], [high], [low, high], [low, other], [several]))
