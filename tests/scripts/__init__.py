"""Scripts of plain python-telegram-bot, as people write them; nothing here knows of Ferryman."""
