"""The Spark session of the test of the emergency channels."""

from __future__ import annotations

from tests.spark import spark

__all__ = ["spark"]
