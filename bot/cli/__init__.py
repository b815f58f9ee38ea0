"""The front door: the one place that knows every role, and imports each only when asked for."""
