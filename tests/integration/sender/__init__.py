"""Tests of the sender against a real database and a stub of Telegram on a real socket."""
