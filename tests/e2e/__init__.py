"""The roles as real processes on loopback, and a real browser in front of them."""
