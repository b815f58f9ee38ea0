"""Texts as Telegram's server reads them: markup and entities, what they count as, where to cut.

Pure, and without Telegram's libraries: the rules are those of Telegram's own server, read in its
source (TDLib, `MessageEntity.cpp`, `misc.cpp`, `LinkManager.cpp` of July 2026).
"""
