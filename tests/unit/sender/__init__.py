"""Unit tests of the sender floor."""
