"""Unit tests of the bot floor."""
