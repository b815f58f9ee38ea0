"""Turns: one update, all it changes and all it wants to say, committed once."""
