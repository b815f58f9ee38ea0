"""`ferryman send`: what a cron job leaves, what it is told, and what came of it."""

import io
import json
import shlex
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest

from bot.cli.main import main
from storage import outbox, reports
from storage.carriers import Row
from storage.claims import Accepted, AttemptEnd, claim, close_attempts, heads, mark_sent, stamp
from storage.database import Tx, connect
from storage.lifecycle import AttemptStage, OutboxId, Priority
from storage.reports import RowReport
from tests.integration.cli.conftest import Printed, Typed
from tests.integration.cli.site import BOT, WORDS, Site

Sends = Callable[..., Printed]


@pytest.fixture
def sends(ferryman: Typed, site: Site, capsys: pytest.CaptureFixture[str]) -> Sends:
    """Type `send` at a site with a database, its words in a shell's quotes."""
    ferryman("migrate")

    def typed(line: str) -> Printed:
        capsys.readouterr()
        code = main(["send", "--bot", "main", *shlex.split(line), "--config", str(site.config)])
        return Printed(code, *capsys.readouterr())

    return typed


def rows(site: Site) -> list[Row]:
    """All calls, as another process sees them."""
    connection = connect(site.database)
    try:
        return connection.execute("select * from outbox order by id", {}).fetchall()
    finally:
        connection.close()


def test_a_text_is_left_for_the_sender(sends: Sends, site: Site) -> None:
    printed = sends(f'--chat 5 --text "{WORDS}"')
    assert (printed.code, printed.out, printed.err) == (0, "c1 left for the sender\n", "")
    (row,) = rows(site)
    assert json.loads(row["params"]) == {"chat_id": "5", "text": WORDS}
    assert (row["lane"], row["chat_id"], row["state"]) == ("c:5", 5, "queued")


def test_any_method_is_left_with_its_parameters(
    sends: Sends, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sends('--method setMyName --params \'{"name": "Ferry"}\'').code == 0
    told = b'{"chat_id": -1001234567890, "photo": "https://example.org/a.jpg"}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(told)))
    wish = "--class bulk --ttl 60 --supersede photo --on-uncertain drop --not-before 4091270400000"
    assert sends(f"--method sendPhoto --params - {wish}").code == 0
    setting, photo = rows(site)
    assert (setting["method"], setting["lane"]) == ("setMyName", "m:")
    assert (photo["method"], photo["chat_id"]) == ("sendPhoto", -1001234567890)
    assert (photo["priority"], photo["on_uncertain"]) == ("bulk", "drop")
    assert (photo["not_before_ms"], photo["expires_at_ms"]) == (
        4_091_270_400_000,
        4_091_270_460_000,
    )


def test_a_negative_chat_is_a_chat_and_no_option(sends: Sends, site: Site) -> None:
    assert sends("--chat -1001234567890 --text x").code == 0
    assert rows(site)[0]["lane"] == "c:-1001234567890"


def test_a_job_that_runs_again_leaves_nothing_new(sends: Sends, site: Site) -> None:
    assert sends("--chat 5 --text done --key backup-7").out == "c1 left for the sender\n"
    again = sends("--chat 5 --text done --key backup-7")
    assert (again.code, again.out) == (0, "c1 stands under this key already: queued\n")
    other = sends("--chat 5 --text failed --key backup-7")
    assert other.code == 1
    assert other.err == (
        "ferryman: this key stands for call 1 already, and that one differs in params: send the "
        "same call again, or take another key\n"
    )
    assert [row["key"] for row in rows(site)] == ["api:backup-7"]


def test_a_program_reads_what_was_left(sends: Sends) -> None:
    first = sends("--chat 5 --text x --key k --json").document()
    again = sends("--chat 5 --text x --key k --json").document()
    assert first == {"id": 1, "state": "queued", "fresh": True}
    assert again == {"id": 1, "state": "queued", "fresh": False}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--chat 5", "params.text: expected a value: sendMessage needs one"),
        ("--text x", "params.chat_id: expected a value: sendMessage needs one"),
        (
            "--chat news --text x",
            "params.chat_id: expected a chat: its number other than 0, or the @name of a ",
        ),
        (
            "--method sendMesage --chat 5 --text x",
            "method: unknown method sendMesage; did you mean sendMessage?",
        ),
        (
            "--method getMe",
            "method: getMe can't be left for later: it only asks, and a row has nobody who ",
        ),
        (
            '--method sendPhoto --chat 5 --params \'{"photo": "/etc/hostname"}\'',
            "params.photo: expected a file_id or an https:// address: Telegram fetches the file ",
        ),
        (
            "--chat 5 --text x --not-before 2099-01-01T10:00:00",
            "not_before: expected a moment with its time zone, such as Z or +02:00 at its end",
        ),
        ("--chat 5 --text x --class fast", "class: expected 'interactive', 'bulk' or 'paid'"),
        (
            "--chat 5 --text x --class paid",
            "class: expected interactive or bulk: paid broadcasts of this bot are off (limits.",
        ),
        ("--chat 5 --params {", "--params: expected JSON, found: Expecting property name "),
        ("--params []", '--params: expected a JSON object, such as {"chat_id": 5, "text": "…"}'),
        (
            '--chat 5 --text x --params \'{"text": "y"}\'',
            "--text and text in --params: expected one of them",
        ),
        ("--chat 5 --text x --ttl -1", "argument --ttl: expected a number of seconds above 0"),
        ("--chat 5 --text x --wait nan", "argument --wait: expected a number of seconds above 0"),
        ("--chat 5 --text x --kee k", "unknown option '--kee'; did you mean --key?"),
    ],
)
def test_what_can_not_be_left_is_refused_as_the_api_refuses_it(
    sends: Sends, site: Site, line: str, told: str
) -> None:
    printed = sends(line)
    assert printed.code == 2
    assert printed.out == ""
    assert printed.err.startswith(f"ferryman: {told}")
    assert rows(site) == []


def test_an_unknown_bot_is_told_with_the_one_that_was_meant(ferryman: Typed) -> None:
    ferryman("migrate")
    printed = ferryman("send --bot mian --chat 5 --text x")
    assert (printed.code, printed.err) == (
        2,
        "ferryman: bot: unknown bot mian; did you mean main?\n",
    )


def test_without_a_database_it_says_so(ferryman: Typed, site: Site) -> None:
    printed = ferryman("send --bot main --chat 5 --text x")
    assert printed.code == 1
    assert "there is no database yet" in printed.err
    assert not site.state.exists()


def test_waiting_tells_that_it_was_sent(sends: Sends, site: Site) -> None:
    sender = threading.Thread(target=_send_one, args=(site,))
    sender.start()
    printed = sends("--chat 5 --text x --wait 20")
    sender.join()
    assert (printed.code, printed.out) == (0, "c1 sent as message 990\n")


def test_waiting_tells_what_became_of_one_that_was_not_sent(sends: Sends, site: Site) -> None:
    sends("--chat 5 --text x --key k")
    site.write(partial(outbox.cancel_lane, bot=BOT, lane="c:5", reason='gone: "secret words"'))
    printed = sends("--chat 5 --text x --key k --wait 5")
    assert (printed.code, printed.out) == (1, 'c1 not sent, cancelled: gone: "…"\n')
    document = sends("--chat 5 --text x --key k --wait 5 --json").document()
    assert document == {
        "id": 1,
        "state": "cancelled",
        "reason": 'gone: "…"',
        "message_id": None,
        "attempts": 0,
    }


def test_waiting_ends_when_its_time_is_over(sends: Sends) -> None:
    printed = sends("--chat 5 --text x --wait 0.05")
    assert (printed.code, printed.out) == (1, "c1 not sent yet, queued (ferryman show c1)\n")


def _send_one(site: Site) -> None:
    """Be the sender for one call: wait for it, claim it, have it accepted."""
    while not _is_there(site):
        pass
    site.write(_accept)


def _is_there(site: Site) -> bool:
    found: RowReport | None = site.write(partial(reports.show, row_id=OutboxId(1)))
    return found is not None


def _accept(tx: Tx) -> None:
    claims = claim(tx, heads(tx, BOT, Priority.INTERACTIVE, limit=1), 1)
    stamp(tx, claims)
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    close_attempts(tx, [(each, end) for each in claims])
    mark_sent(tx, [Accepted(each, 990) for each in claims])
