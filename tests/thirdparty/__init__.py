"""Packages of others on python-telegram-bot, under `ferryman exec`."""
