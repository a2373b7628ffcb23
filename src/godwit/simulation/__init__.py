"""Drives real brokers in virtual time.  Public: authors of overlays and policies test with it."""
