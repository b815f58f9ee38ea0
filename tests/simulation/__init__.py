"""Simulated worlds: the real turn and sender code on virtual time, with faults and invariants."""
