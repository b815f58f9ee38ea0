"""The bot: receives updates, runs the handlers, decides what to say. It never says it itself."""
