"""Bots as people write them. None of them knows of Ferryman."""
