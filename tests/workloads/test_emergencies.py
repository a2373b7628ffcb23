"""BS1: as many of everything as the paper says, from a seed."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, pairwise
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.sweeps import seeds

from godwit.content.geography import GeoPoint, plane_distance_m
from godwit.workloads.emergencies import (
    DURATION_S,
    TYPES,
    EmergencySubscriber,
    emergency_reports,
    emergency_subscribers,
    shelters,
    user_locations,
)
from godwit.workloads.emergency_channels import (
    CHANNELS,
    DATASETS,
    FEEDS,
    Argument,
    EmergencyChannel,
)
from godwit.workloads.roads import street_grid

SEEDS = range(1, 1 + seeds(1, whole=3))
TOWN = street_grid()


def made(seed: int) -> list[EmergencySubscriber]:
    return emergency_subscribers(Random(seed), TOWN, 400)


@pytest.mark.parametrize("seed", SEEDS)
def test_subscriptions_are_shared_as_in_the_paper(seed: int) -> None:
    """B1: about 2,200 FE and 600 BE subscriptions, 3.7 for each."""
    fe = [(s.channel, s.arguments) for who in made(seed) for s in who.subscriptions]

    assert len(fe) == pytest.approx(2200, rel=0.1)
    assert len(set(fe)) == pytest.approx(600, rel=0.1)
    assert len(fe) / len(set(fe)) == pytest.approx(3.7, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_subscriber_does_as_the_paper_says(seed: int) -> None:
    for who in made(seed):
        held = Counter(s.channel for s in who.subscriptions)
        assert 1 <= len(held) <= 5
        assert all(1 <= count <= 3 for count in held.values())
        assert len({(s.channel, s.arguments) for s in who.subscriptions}) == held.total()
        assert 0 <= who.login_s <= 240
        times_s = [s.at_s for s in who.subscriptions]
        assert times_s == sorted(times_s)
        assert all(240 <= at_s <= 480 for at_s in times_s)


def test_arguments_are_those_of_the_channel() -> None:
    channels = {channel.name: channel for channel in CHANNELS}
    kinds = {"STRING": str, "DOUBLE": float}
    seen = set()
    for who in made(1):
        for subscription in who.subscriptions:
            channel = channels[subscription.channel]
            wanted = [kinds[kind] for _, kind in channel.parameters]
            assert [type(value) for value in subscription.arguments] == wanted
            if Argument.USER in channel.asks_for:
                assert subscription.arguments == (who.user,)
            seen.add(channel.name)
    assert seen == channels.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_reports_are_as_many_and_as_large_as_in_the_paper(seed: int) -> None:
    reports = list(emergency_reports(Random(seed), TOWN, until_s=DURATION_S, start_s=5e8))

    assert len(reports) == pytest.approx(10_000, rel=0.05)
    sizes = [len(msgspec.json.encode(report.record)) for report in reports]
    assert (min(sizes), max(sizes)) == (200, 700)
    assert len({report.publisher for report in reports}) == 8
    assert {report.record["etype"] for report in reports} == set(TYPES)
    assert len({report.record["report_id"] for report in reports}) == len(reports)
    times_s = [report.at_s for report in reports]
    assert times_s == sorted(times_s)
    assert all(abs(float(r.record["at"]) - 5e8 - r.at_s) < 0.001 for r in reports)


def test_everybody_s_place_every_second_and_nobody_jumps() -> None:
    published = list(user_locations(Random(1), TOWN, 20, until_s=30, start_s=100.0))

    assert len(published) == 20 * 30
    by_user = sorted(published, key=lambda p: (p.publisher, p.at_s))
    for user, each in groupby(by_user, key=lambda p: p.publisher):
        track = list(each)
        assert [p.at_s for p in track] == list(range(30))
        assert all(p.record["user_id"] == user for p in track)
        assert [p.record["at"] for p in track] == [100.0 + s for s in range(30)]
        places = [
            GeoPoint(float(p.record["latitude"]), float(p.record["longitude"])) for p in track
        ]
        steps_m = [plane_distance_m(a, b) for a, b in pairwise(places)]
        assert 0.0 < max(steps_m) < 1.51


def test_shelters_stand_on_the_map() -> None:
    found = shelters(Random(1), TOWN)

    assert len({shelter["shelter_id"] for shelter in found}) == 200
    assert all(
        GeoPoint(float(s["latitude"]), float(s["longitude"])) in TOWN.neighbours for s in found
    )


def test_the_same_seed_gives_the_same_and_another_gives_another() -> None:
    assert made(1) == made(1) != made(2)
    one, same, other = (
        list(emergency_reports(Random(seed), TOWN, until_s=20)) for seed in (1, 1, 2)
    )
    assert one == same != other


def test_seven_channels_over_three_datasets() -> None:
    assert len(CHANNELS) == 7
    assert sorted({channel.every_s for channel in CHANNELS}) == [10, 20, 30]
    assert {asked for channel in CHANNELS for asked in channel.asks_for} == set(Argument)
    assert (len(DATASETS), len(FEEDS)) == (3, 2)
    assert CHANNELS[3].statement.startswith(
        "CREATE CHANNEL EmergenciesOfTypeInArea(event_type STRING, area_latitude DOUBLE,"
        " area_longitude DOUBLE) EVERY 20 SECONDS AS SELECT "
    )
    for channel in CHANNELS:
        for name, _ in channel.parameters:
            assert f":{name}" in channel.query


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_spark_understands_the_query(spark: SparkSession, channel: EmergencyChannel) -> None:
    """`NEW` and `distance` are the data cluster's; everything else is Spark's own language."""
    for dataset in DATASETS:
        name, columns = re.findall(r"DATASET (\w+) \((.*)\)", dataset, re.DOTALL)[0]
        spark.createDataFrame([], columns.strip()).createOrReplaceTempView(name)
    spark.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION distance(a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE)"
        " RETURNS DOUBLE RETURN sqrt((a - c) * (a - c) + (b - d) * (b - d)) * 111000"
    )
    arguments = {name: "x" if kind == "STRING" else 60.0 for name, kind in channel.parameters}

    result = spark.sql(channel.query.replace("NEW ", ""), args=arguments)

    assert len(result.columns) == len(set(result.columns)) >= 3
