"""Several parts together in one process, over a real database."""
