"""A shop on `vitrine`, written as its README shows: screens, typed buttons, an order, a worker."""

import os
from dataclasses import dataclass, field

from telegram import Update
from telegram.ext import ContextTypes
from vitrine import (
    END,
    Bot,
    Button,
    CallbackData,
    Conversation,
    Delivery,
    Document,
    ExitReason,
    ReplyKeyboard,
    Screen,
    UserFacingError,
)

bot = Bot(token=os.environ["BOT_TOKEN"])


class Shelf(CallbackData, prefix="shelf"):
    """The button of a shelf."""

    name: str
    row: int


class Home(CallbackData, prefix="home"):
    """The button that leads back."""


class Prices(CallbackData, prefix="prices"):
    """The button that shows a file in place of the text."""


@dataclass
class Draft:
    """What is being asked for."""

    item: str = ""


@dataclass
class Orders:
    """What was ordered, for the worker to send out."""

    waiting: list[tuple[int, str]] = field(default_factory=list)


bot.provide_value("orders", Orders())
order = Conversation("order", Draft, timeout=1.5, exclusive=True)
survey = Conversation("survey", Draft, exclusive=True)


def chat_of(update: Update) -> int:
    """The chat that an update came from."""
    assert update.effective_chat is not None
    return update.effective_chat.id


def said_in(update: Update) -> str:
    """What the user wrote."""
    assert update.effective_message is not None
    assert update.effective_message.text is not None
    return update.effective_message.text


def home() -> Screen:
    """The first screen."""
    shelves = [[Button(name, callback=Shelf(name=name, row=at))] for at, name in enumerate("ab")]
    return Screen(text="Welcome!", keyboard=[*shelves, [Button("Prices", callback=Prices())]])


@bot.command("start", description="Open the menu")
@bot.callback(Home)
@bot.reply_button("Shop")
async def start() -> Screen:
    """Open the menu, from anywhere."""
    return home()


@bot.callback(Shelf)
async def shelf(data: Shelf) -> Screen:
    """Show a shelf in place of what was there."""
    back = Button("Back", callback=Home())
    return Screen(text=f"Shelf {data.name}, row {data.row + 1}", keyboard=[[back]])


@bot.callback(Prices)
async def prices() -> Screen:
    """Show a file: text can't be edited into one, so the message is replaced."""
    price_list = Document(b"tea 2\ncake 3\n", filename="prices.txt")
    back = Button("Back", callback=Home())
    return Screen(text="As of today", media=price_list, keyboard=[[back]])


@bot.command("again", description="The menu as a new message")
async def again(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Render by hand, through what the framework left in bot_data."""
    await home().render(update, context, fresh=True)


@bot.command("keys", description="A keyboard that stays")
async def keys() -> Screen:
    """Show a reply keyboard."""
    return Screen(text="Here it is", reply_keyboard=ReplyKeyboard([["Shop"]]))


@bot.command("add", description="Add two numbers")
async def add(a: int, b: int) -> Screen:
    """Take typed arguments."""
    return Screen(text=f"{a + b}")


@bot.command("closed", description="Say no")
async def closed() -> Screen:
    """Fail in the user's face."""
    raise UserFacingError("Not today")


@order.entry(command="order")
async def ordering() -> tuple[str, Screen]:
    """Begin an order."""
    return "item", Screen(text="What would you like?")


@order.state("item")
async def item(state: Draft, update: Update) -> tuple[str, Screen]:
    """Take what is ordered."""
    state.item = said_in(update)
    return "count", Screen(text="How many?")


@order.state("count")
async def count(state: Draft, update: Update, orders: Orders) -> tuple[int, Screen]:
    """Take how much, and leave the rest to the worker."""
    said = f"{said_in(update)} x {state.item}"
    orders.waiting.append((chat_of(update), said))
    return END, Screen(text=f"Ordered: {said}")


@order.on_exit
async def left(state: Draft, reason: ExitReason, delivery: Delivery, update: Update) -> None:
    """Tell whoever was too slow, or began something else."""
    if reason is not ExitReason.FINISHED:
        await delivery.send(chat_of(update), Screen(text=f"Order dropped: {reason.value}"))


@survey.entry(command="survey")
async def asking() -> tuple[str, Screen]:
    """Begin a survey, which ends an order."""
    return "answer", Screen(text="How was it?")


@survey.state("answer")
async def answered(update: Update) -> tuple[int, Screen]:
    """Take the answer."""
    return END, Screen(text=f"Noted: {said_in(update)}")


bot.conversation(order)
bot.conversation(survey)


@bot.worker(every=0.2)
async def dispatch(orders: Orders, delivery: Delivery) -> None:
    """Send from a task of the framework's own, outside any handler."""
    while orders.waiting:
        chat_id, said = orders.waiting.pop()
        await delivery.send(chat_id, Screen(text=f"On its way: {said}"))


bot.run()
