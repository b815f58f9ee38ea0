"""The architecture and the manners of the code, as tests."""
