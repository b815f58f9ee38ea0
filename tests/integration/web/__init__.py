"""The web role with real HTTP on loopback and a real database."""
