"""The conversation that ships: plain python-telegram-bot, and a model for a bot of one's own.

Nothing here knows of tables or of the sender. What a handler says is delivered if its turn
succeeds, and not at all if it raises.
"""

from bot.handlers.conversation import register

__all__ = ["register"]
