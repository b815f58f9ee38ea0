"""The Telegram Bot API simulator: a strict model of Telegram with its own clock, ledger and faults.

It judges the product, so it imports nothing of it. See README.md beside this file.
"""
