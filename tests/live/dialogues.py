"""The scripts of tests/scripts, and the dialogue that a person has with each. Pure.

A dialogue is the same however the script is run: by the library alone, by `ferryman exec`, and
under kills.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.live.dialogue import (
    Becomes,
    ChecksOut,
    Gives,
    Hears,
    Presses,
    Says,
    Ships,
    Steps,
    Votes,
    sees,
    uploaded,
)
from tests.scripts import media
from tests.simulator.media import file_id
from tests.simulator.wire import JsonObject

SCRIPTS: Final = Path(__file__).parents[1] / "scripts"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Which bot it is, and how many people have had this dialogue with it, this one included."""

    bot: int
    nth: int


def _echo(_: Meeting) -> Steps:
    return (
        Says("/start"),
        sees("Hi Ada!"),
        Says("hello"),
        sees("re hello: hello"),
        Says("one"),
        Says("two"),
        Says("three"),
        sees("re one: one", "re two: two", "re three: three"),
        Says("/help"),
        sees("Say something."),
    )


def _survey(_: Meeting) -> Steps:
    return (
        Says("/start"),
        sees("I know nothing of you."),
        Says("Age"),
        sees("Your age?"),
        Says("/show"),
        sees("So far:\nchoice - age"),
        Says("36"),
        sees("Now I know:\nage - 36"),
        Says("Colour"),
        sees("Your colour?"),
        Says("green"),
        sees("Now I know:\nage - 36\ncolour - green"),
        Says("Done"),
        sees("I learned:\nage - 36\ncolour - green"),
        Says("/start"),
        sees("I know age, colour of you."),
        Says("Done"),
        sees("I learned:\nage - 36\ncolour - green"),
    )


def _menu(_: Meeting) -> Steps:
    drinks, spoons = "What would you like? [Tea] [Coffee]", "of sugar [-] [+] [Back] [Order]"
    return (
        Says("/start"),
        sees(drinks),
        Presses("Coffee"),
        Becomes(f"Coffee, 0 {spoons}"),
        Presses("Back"),
        Becomes(drinks),
        Presses("Tea"),
        Becomes(f"Tea, 0 {spoons}"),
        Presses("+"),
        Becomes(f"Tea, 1 {spoons}"),
        Presses("+"),
        Becomes(f"Tea, 2 {spoons}"),
        Presses("Order", toast="Thank you!"),
        Becomes("Tea, 2 of sugar"),
        sees("Your tea with 2 of sugar is ready"),
        Says("/start"),
        sees(drinks),
    )


def _timers(_: Meeting) -> Steps:
    return (
        Says("/start"),
        sees("/set SECONDS, /unset, /tick"),
        Says("/set soon"),
        sees("Usage: /set SECONDS"),
        Says("/unset"),
        sees("There is none"),
        Says("/set 0.5"),
        sees("Timer set"),
        Hears("Beep! 0.5 s are over"),
        Says("/tick"),
        sees("Listen:"),
        Hears("tick"),
        Hears("tick tick"),
        Hears("tick tick tick"),
        Says("/set 0.2"),
        sees("Timer set"),
        Hears("Beep! 0.2 s are over"),
    )


def _polls(_: Meeting) -> Steps:
    poll = "poll: How are you? Good | Great | Fantastic"
    return (
        Says("/poll"),
        sees(poll),
        Votes((0,)),
        sees("Ada feels Good!"),
        Votes((1, 2), friend="Ben"),
        sees("Ben feels Great and Fantastic!"),
        Says("/count"),
        sees("1 polls, 2 answers"),
        Says("/close"),
        Becomes(f"closed {poll}", was=poll),
        Says("/poll"),
        sees(poll),
    )


def _paid(amount: int, currency: str) -> Gives:
    told: JsonObject = {
        "currency": currency,
        "total_amount": amount,
        "invoice_payload": "a-book",
        "telegram_payment_charge_id": "t1",
        "provider_payment_charge_id": "p1",
    }
    return Gives({"successful_payment": told})


def _shop(_: Meeting) -> Steps:
    return (
        Says("/start"),
        sees("/book to have one sent, /ebook to read at once"),
        Says("/book"),
        sees("invoice: A book, 1250 EUR"),
        Ships("a-book", "AQ", refusal="No post goes there"),
        Ships("a-book", "DE"),
        ChecksOut("another-book", refusal="That is no longer sold"),
        ChecksOut("a-book"),
        _paid(1550, "EUR"),
        sees("Thank you! So far: 1550 EUR"),
        Says("/ebook"),
        sees("invoice: An e-book, 9 XTR"),
        ChecksOut("a-book"),
        _paid(9, "XTR"),
        sees("Thank you! So far: 1550 EUR, 9 XTR"),
    )


def _media(meeting: Meeting) -> Steps:
    red, green, blue = (
        uploaded(media.picture(*colour)) for colour in ((200, 0, 0), (0, 200, 0), (0, 0, 200))
    )
    table = uploaded(media.TABLE)
    document = {
        "file_id": file_id("document", meeting.bot, 4711),
        "file_unique_id": "0000004711",
        "file_name": "plan.pdf",
        "mime_type": "application/pdf",
    }
    sizes = [
        {
            "file_id": file_id("photo", meeting.bot, number),
            "file_unique_id": f"000000{number}",
            "width": side,
            "height": side,
        }
        for number, side in ((4712, 90), (4713, 320))
    ]
    return (
        Says("/photo"),
        sees(f"photo {red}: dark red"),
        Says("/album"),
        sees(f"album photo {green}: green", f"album photo {blue}"),
        Says("/table"),
        sees(f"document {table}: Here it is"),
        Gives({"document": document}, "keep this"),
        sees("document 0000004711: plan.pdf again"),
        Gives({"photo": sizes}),
        sees("photo 0000004713: Nice!"),
        Says("/photo"),
        sees(f"photo {red}: dark red"),
    )


def _errors(_: Meeting) -> Steps:
    return (
        Says("/divide 9 3"),
        sees("It is 3"),
        Says("/divide 1 0"),
        sees("Sorry: <class 'ZeroDivisionError'>\nin divide"),
        Says("/divide by none"),
        sees("Sorry: <class 'ValueError'>\nin divide"),
        Says("/careful"),
        sees("unclosed, without its markup"),
        Says("/broken"),
        sees("Sorry: <class 'telegram.error.BadRequest'>\nin broken"),
        Says("/divide 8 4"),
        sees("It is 2"),
    )


def _nested(_: Meeting) -> Steps:
    main, member = "[Add] [Show] [Done]", "[Name] [Back]"
    return (
        Says("/start"),
        sees("Hi, I know families.", f"Your family has 0 members {main}"),
        Presses("Add"),
        Becomes(f"Who is it? {member}"),
        Presses("Name"),
        Becomes("Their name?"),
        Says("Eve"),
        sees(f"Got Eve {member}"),
        Presses("Name"),
        Becomes("Their name?"),
        Says("Abel"),
        sees(f"Got Abel {member}"),
        Presses("Back"),
        Becomes(f"Your family has 2 members {main}"),
        Presses("Show"),
        Becomes("They are Eve, Abel [Up]"),
        Presses("Up"),
        Becomes(f"Your family has 2 members {main}"),
        Presses("Add"),
        Becomes(f"Who is it? {member}"),
        Says("/stop"),
        sees("Okay, bye."),
        Says("/start"),
        sees("Hi, I know families.", f"Your family has 2 members {main}"),
        Presses("Done"),
        Becomes("See you around!"),
    )


def _objects(_: Meeting) -> Steps:
    keys = "[1] [2] [3] [4] [5]"
    return (
        Says("/start"),
        sees(f"Choose: {keys}"),
        Presses("3"),
        Becomes(f"Chosen so far: [3], 3 in all. Choose: {keys}"),
        Presses("5"),
        Becomes(f"Chosen so far: [3, 5], 8 in all. Choose: {keys}"),
        Says("/start"),
        sees(f"Choose: {keys}"),
        Presses("1"),
        Becomes(f"Chosen so far: [1], 1 in all. Choose: {keys}"),
        Says("/clear"),
        sees("All clear!"),
        Presses("2"),
        Becomes("That was too long ago. /start again"),
    )


def _counters(meeting: Meeting) -> Steps:
    nth = meeting.nth
    before = (nth - 1) * 6
    return (
        Says("/note milk"),
        sees("milk"),
        Says("/note bread and butter"),
        sees("milk; bread and butter"),
        Says("/stats"),
        sees(f"you 3, here 3, all {before + 3} of {nth} users"),
        Says("/forget"),
        sees("Forgotten"),
        Says("/stats"),
        sees(f"you 5, here 1, all {before + 5} of {nth} users"),
        Says("/note eggs"),
        sees("eggs"),
    )


DIALOGUES: Final[Mapping[str, Callable[[Meeting], Steps]]] = {
    "counters": _counters,
    "echo": _echo,
    "errors": _errors,
    "media": _media,
    "menu": _menu,
    "nested": _nested,
    "objects": _objects,
    "polls": _polls,
    "shop": _shop,
    "survey": _survey,
    "timers": _timers,
}
