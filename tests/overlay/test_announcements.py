"""The index over advertisements finds what a linear search finds."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId
from godwit.overlay.tree import announcements
from godwit.overlay.tree.announcements import INDEXED_ATTRIBUTES_MAX, Announcements

ATTRIBUTES = [f"a{number}" for number in range(INDEXED_ATTRIBUTES_MAX + 3)]


def _filter(random: Random) -> Filter:
    chosen = random.sample(ATTRIBUTES, random.randint(1, 4))
    forms = ("{} = 'x'", "{} = 'y'", "{} is present", "{} > 3", "{} in ('x', 'z')", "{} = true")
    return Filter.parse(" and ".join(random.choice(forms).format(name) for name in chosen))


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_a_linear_search_finds(seed: int) -> None:
    random, index = Random(seed), Announcements()
    there: dict[AdvertisementId, Filter] = {}
    for number in range(200):
        if there and random.random() < 0.3:
            id = random.choice(list(there))
            del there[id]
            index.remove(id)
        else:
            id = AdvertisementId(f"p/a{number}")
            there[id] = _filter(random)
            index.add(id, there[id])
        index.check()
        assert set(index) == set(there)
        for _ in range(5):
            interest = _filter(random)
            assert index.announce(interest) == any(f.announces(interest) for f in there.values())


def test_an_advertisement_with_another_text_is_not_looked_at() -> None:
    index = Announcements()
    for number in range(1_000):
        text = f"class = 'STOCK' and symbol = 'S{number}' and price > 0"
        index.add(AdvertisementId(f"p/a{number}"), Filter.parse(text))
    looked_at = list(index._candidates(Filter.parse("class = 'STOCK' and symbol = 'S7'")))
    assert [str(filter) for filter in looked_at] == [
        "class = 'STOCK' and symbol = 'S7' and price > 0"
    ]


def test_a_client_cannot_fill_the_memory_with_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "INDEXED_ATTRIBUTES_MAX", 2)
    index = Announcements()
    for number in range(10):
        index.add(AdvertisementId(f"p/a{number}"), Filter.parse(f"a{number} = 'x'"))
    assert len(index._by_text) == 2
    assert index.announce(Filter.parse("a9 = 'x'"))
    assert not index.announce(Filter.parse("a9 = 'y'"))
