"""The Spark session of the tests of planning on Spark."""

from __future__ import annotations

from tests.spark import spark

__all__ = ["spark"]
