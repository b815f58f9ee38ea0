"""The only door from the internet: small, tokenless, and never slowed by a handler."""
