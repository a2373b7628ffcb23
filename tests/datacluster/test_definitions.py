"""Definitions of datasets and feeds: names, dependencies, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.datacluster.stating import dataset_statement

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.definitions import Definitions
from godwit.datacluster.model.feed import Feed
from godwit.errors import UsageError


def names(definitions: Definitions) -> list[str]:
    return [known.dataset.name for known in definitions.all()]


def test_a_fed_dataset_has_a_quarantine_and_a_static_one_none(tmp_path: Path) -> None:
    definitions = Definitions(Catalog(tmp_path))
    definitions.apply(dataset_statement("CREATE DATASET Reports (id INT)"))
    definitions.apply(dataset_statement("CREATE DATASET Shelters (id INT) STATIC"))
    definitions.apply(dataset_statement("CREATE FEED f FROM FILTER 'a = 1' INTO reports"))

    again = Definitions(Catalog(tmp_path))  # As after a restart.
    assert names(again) == ["Reports", "Reports_quarantine", "Shelters"]
    assert again.feeds() == [Feed("f", "a = 1", "Reports")]
    reports, quarantine, _ = again.all()
    assert quarantine.quarantine_of == reports.id
    assert again.entry("REPORTS") == reports


def test_a_name_is_taken_until_it_is_dropped_and_a_number_for_ever(tmp_path: Path) -> None:
    definitions = Definitions(Catalog(tmp_path))
    made = definitions.apply(dataset_statement("CREATE DATASET Reports (id INT)"))
    with pytest.raises(UsageError, match="dataset Reports exists already"):
        definitions.apply(dataset_statement("CREATE DATASET reports (other INT)"))
    assert definitions.apply(dataset_statement("DROP DATASET REPORTS")) == made
    assert names(definitions) == []
    later = definitions.apply(dataset_statement("CREATE DATASET Reports (id INT)"))
    assert not {known.id for known in made} & {known.id for known in later}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE FEED f FROM FILTER 'a = 1' INTO Nothing", "there is no dataset Nothing"),
        ("CREATE FEED f FROM FILTER 'a = 1' INTO Shelters", "Shelters is static"),
        (
            "CREATE FEED f FROM FILTER 'a = 1' INTO Reports_quarantine",
            "Reports_quarantine is a quarantine",
        ),
        ("CREATE FEED REPORTS FROM FILTER 'a = 1' INTO Reports", "feed reports exists already"),
        ("DROP DATASET Reports", "is fed by reports: drop that feed first"),
        ("DROP DATASET Reports_quarantine", "it is dropped with its dataset"),
        ("DROP DATASET Nothing", "there is no dataset Nothing"),
        ("DROP FEED nothing", "there is no feed nothing"),
    ],
)
def test_what_cannot_be(tmp_path: Path, text: str, reason: str) -> None:
    definitions = Definitions(Catalog(tmp_path))
    definitions.apply(dataset_statement("CREATE DATASET Reports (id INT)"))
    definitions.apply(dataset_statement("CREATE DATASET Shelters (id INT) STATIC"))
    definitions.apply(dataset_statement("CREATE FEED reports FROM FILTER 'a = 1' INTO Reports"))
    before = definitions.all(), definitions.feeds()
    with pytest.raises(UsageError, match=reason):
        definitions.apply(dataset_statement(text))
    assert (definitions.all(), definitions.feeds()) == before
