"""Tests of the commands on a real database, and as real processes."""
