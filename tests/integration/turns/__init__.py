"""Turns over a real database and the real library."""
