"""Menus by `telegram_menu`, written as its README shows: a tree, inline buttons, a file, a poll."""

import os
from pathlib import Path

from telegram_menu import BaseMessage, ButtonType, NavigationHandler, TelegramMenuSession

FOLDER = Path(os.environ["BOT_FOLDER"])
# A picture of one pixel.
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63600000000200010a2d1c0a"
    "0000000049454e44ae426082"
)


class Second(BaseMessage):
    """A second menu, with inline buttons."""

    def __init__(self, navigation: NavigationHandler) -> None:
        super().__init__(navigation, "second", inlined=True)
        self.times = 0
        self.add_button(label="Action", callback=self.run_and_notify)
        self.add_button(label="Content", callback=self.content, btype=ButtonType.MESSAGE)
        self.add_button(label="Picture", callback=self.dot, btype=ButtonType.PICTURE)
        question = ["Which way?", ["Left", "Right"]]
        self.add_button(label="Poll", callback=self.chosen, btype=ButtonType.POLL, args=question)

    def update(self) -> str:
        """Tell the text of this menu."""
        return f":warning: <b>Second</b> message, pressed {self.times}"

    def run_and_notify(self) -> str:
        """Do something, and tell what the notification says."""
        self.times += 1
        return f"This is notification {self.times}"

    def content(self) -> str:
        """Tell the text of another message."""
        return "Some <i>content</i>"

    def dot(self) -> str:
        """Tell the path of a picture."""
        return str(FOLDER / "dot.png")

    async def chosen(self, answer: str) -> None:
        """Hear what was voted for."""
        await self.navigation.send_message(f"{answer} it is")

    async def text_input(self, text: str, _: object = None) -> None:
        """Hear what was typed."""
        await self.navigation.send_message(f"You typed {text}")


class Third(BaseMessage):
    """A third menu, which leads back."""

    def __init__(self, navigation: NavigationHandler) -> None:
        super().__init__(navigation, "third")
        self.add_button_back()

    def update(self) -> str:
        """Tell the text of this menu."""
        return "Third message"


class Start(BaseMessage):
    """The start menu."""

    def __init__(self, navigation: NavigationHandler) -> None:
        super().__init__(navigation, "start")
        self.add_button(label="Second menu", callback=Second(navigation))
        self.add_button(label="Third menu", callback=Third(navigation))

    def update(self) -> str:
        """Tell the text of this menu."""
        return "Hello, world!"


(FOLDER / "dot.png").write_bytes(DOT)
TelegramMenuSession(os.environ["BOT_TOKEN"], persistence_path=str(FOLDER / "menus.pickle")).start(
    Start
)
