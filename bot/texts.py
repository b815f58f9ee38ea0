"""What the bot that ships says. Words only: when each is said, the handlers know."""

from typing import Final

WELCOME: Final = (
    "Welcome aboard! 👋\n\n"
    "Ask me about the crossing: when we leave, what it costs, how long it takes. "
    "/menu shows it all on buttons, /help tells what I can do.\n\n"
    "I may write to you when something changes. If you would rather not hear from me, send /stop."
)
HELP: Final = (
    "Here is what I understand:\n\n"
    "/start: begin, and hear about changes\n"
    "/stop: no more news, I only answer when you ask\n"
    "/menu: departures, fares and the crossing, on buttons\n\n"
    "Or just ask. If you ask again before I have answered, I answer the newer question."
)
STOPPED: Final = (
    "All right: no more news from me. I still answer whenever you write.\n"
    "Send /start if you change your mind."
)
MENU: Final = "What would you like to know?"
APOLOGY: Final = (
    "Something went wrong on my side, and I could not do what you asked. "
    "It has been noted. Please try again in a while."
)
UNKNOWN_COMMAND: Final = "I don't know that command. /help lists those that I do."
UNSURE: Final = "I don't know that one yet. Ask me about departures, fares or the crossing."

TOPICS: Final = {
    "departures": "⛴ We leave on the hour, from seven in the morning to nine in the evening.",
    "fares": "🎟 Three coins for you, one for your bicycle. Dogs cross for free.",
    "crossing": "🌊 Twelve minutes when the river is calm. In flood we wait, and nobody is left.",
}
TITLES: Final = {
    "departures": "Departures",
    "fares": "Fares",
    "crossing": "The crossing",
}

_WORDS: Final = {
    "departures": ("when", "departure", "leave", "leaving", "time", "timetable", "hour", "next"),
    "fares": ("fare", "cost", "price", "pay", "ticket", "coin", "much", "dog", "bicycle", "bike"),
    "crossing": ("crossing", "cross", "long", "river", "flood", "minutes", "weather", "safe"),
}


def answer_to(question: str) -> str:
    """The answer to a question, by the words in it."""
    asked = {word.strip("?!.,;:").casefold() for word in question.split()}
    for topic, words in _WORDS.items():
        if any(word in asked or f"{word}s" in asked for word in words):
            return TOPICS[topic]
    return UNSURE
