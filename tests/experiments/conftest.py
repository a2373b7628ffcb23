"""The Spark session of the tests of the lab."""

from __future__ import annotations

from tests.spark import spark

__all__ = ["spark"]
