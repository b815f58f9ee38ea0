"""Unit tests of the storage floor."""
