"""Ferryman's real processes on loopback: for the demo, end-to-end tests, kills and the bench."""
