"""Ferryman's real processes on loopback, for the demo, the end-to-end tests, the kills and the bench."""
