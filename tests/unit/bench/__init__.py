"""The benchmark's own arithmetic, and the honesty of its load."""
