"""One decider or one door at a time, mostly as tables."""
