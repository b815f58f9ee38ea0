"""Commands that look: what a person and a program get to see, and never see."""

import re
from functools import partial

import pytest

from storage import floods, lanes, outbox, rates, spending
from storage.database import Tx
from storage.floods import Flood
from storage.lifecycle import OutboxId
from storage.migrate import migrations
from storage.outgoing import Outgoing
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import BOT, WORDS, Rows, Site

READING = (
    "status",
    "queue",
    "floods",
    "show c1",
    "show u1",
    "review list",
    "dead list",
    "dead show u1",
)


@pytest.mark.parametrize("line", READING)
def test_without_a_database_every_command_says_so_kindly(line: str, ferryman: Typed) -> None:
    printed = ferryman(line)
    assert printed.code == 1
    assert printed.out == ""
    assert printed.err.startswith("ferryman: there is no database yet in state_dir = ")
    assert "`ferryman migrate`" in printed.err


@pytest.mark.parametrize("line", READING)
def test_looking_makes_no_database(line: str, ferryman: Typed, site: Site) -> None:
    ferryman(line)
    assert not site.state.exists()


@pytest.mark.parametrize("line", READING)
def test_an_empty_database_is_answered_too(line: str, ferryman: Typed) -> None:
    ferryman("migrate")
    printed = ferryman(line)
    assert (printed.code, printed.err) in [
        (0, ""),
        (1, "ferryman: there is no call c1; it may have been forgotten\n"),
        (1, "ferryman: there is no update u1; it may have been forgotten\n"),
    ]


def test_migrate_tells_what_it_applied(ferryman: Typed, site: Site) -> None:
    first = ferryman("migrate")
    told = [f"applied {each.number:04d} {each.name}" for each in migrations()]
    assert first.out.splitlines() == [*told, f"{site.database} has schema {len(told)}"]
    assert ferryman("migrate").out.splitlines()[0] == "nothing to apply"


def test_status_shows_the_whole_house(ferryman: Typed, rows: Rows) -> None:
    told = ferryman("status").out
    assert "worker  ready" in told
    assert "Not running: sender, web" in told
    assert "BOT   UPDATES" in told
    assert "COOLING" in told
    assert "1 h 36 m" in told
    assert "2 calls held for your decision: ferryman review list" in told
    assert "2 updates given up or unreadable: ferryman dead list" in told
    assert "Known to the database, but not configured: retired" in told


def test_status_for_programs_has_every_figure(ferryman: Typed, rows: Rows) -> None:
    document = ferryman("status --json").document()
    (bot,) = document["bots"]
    assert (bot["updates_waiting"], bot["updates_dead"], bot["updates_quarantined"]) == (1, 1, 1)
    assert (bot["uncertain"], bot["review"]) == (1, 1)
    assert bot["outbox"]["bulk"]["queued"] == 1
    assert bot["ended_last_hour"] == {"dead": 1, "sent": 1}
    (cooldown,) = bot["cooldowns"]
    assert 5_800_000 < cooldown["remaining_ms"] <= 5_820_000
    assert [(role["role"], role["silent"]) for role in document["roles"]] == [("worker", False)]
    assert document["bots_not_configured"] == ["retired"]


def test_the_queue_shows_what_waits_and_why(ferryman: Typed, rows: Rows) -> None:
    (title, row) = ferryman("queue").out.splitlines()
    assert title.split()[-4:] == ["TRIES", "WAITING", "DUE", "WHY"]
    assert row.split()[:6] == [f"c{rows.queued}", "main", "9", "sendMessage", "queued", "bulk"]
    (found,) = ferryman("queue --json").document()["rows"]
    assert (found["id"], found["state"], found["chat_id"]) == (rows.queued, "queued", 9)


def _waits_for_a_doubt(tx: Tx, held: OutboxId) -> OutboxId:
    row = Outgoing("editMessageText", {"chat_id": "7", "text": WORDS}, "c:7", "child", chat_id=7)
    child = outbox.enqueue(tx, BOT, row).id
    lanes.step_out(tx, BOT, child, waits_for=held, reason=f"waits until c{held} is decided")
    return child


def test_what_waits_for_a_decision_about_another_call_is_shown_and_counted(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    child = site.write(partial(_waits_for_a_doubt, held=rows.uncertain))
    (_, first, second) = ferryman("queue").out.splitlines()
    assert (first.split()[0], second.split()[0]) == (f"c{child}", f"c{rows.queued}")
    assert f"waits until c{rows.uncertain} is" in first
    (found, _) = ferryman("queue --json").document()["rows"]
    assert found["reason"] == f"waits until c{rows.uncertain} is decided"
    assert len(ferryman("queue --limit 1 --json").document()["rows"]) == 1
    told = ferryman("status").out
    assert "1 call waiting for a decision about another: ferryman queue" in told
    [bot] = ferryman("status --json").document()["bots"]
    assert bot["outside"] == 1


def test_the_queue_of_an_unknown_bot_is_misuse(ferryman: Typed, rows: Rows) -> None:
    printed = ferryman("queue --bot mian")
    assert (printed.code, printed.err) == (
        2,
        "ferryman: unknown bot 'mian'; did you mean main?\n",
    )


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def test_show_tells_a_call_with_its_attempts(ferryman: Typed, rows: Rows) -> None:
    told = ferryman(f"show {rows.uncertain}").out
    assert f"call              c{rows.uncertain} sendMessage" in told
    assert "uncertain" in told
    assert "body_complete" in told
    assert "30 s" in told
    assert "(hidden; --texts shows it)" in told
    assert _first_line(ferryman(f"show c{rows.uncertain}").out) == _first_line(told)
    document = ferryman(f"show {rows.uncertain} --json").document()
    assert "params" not in document
    assert document["history"][0]["status"] == 502


def test_texts_are_shown_on_demand_only(ferryman: Typed, rows: Rows) -> None:
    """The fixture looks for them in every output without `--texts`."""
    assert WORDS in ferryman(f"show {rows.queued} --texts").out
    assert WORDS in ferryman(f"show u{rows.dead_update} --texts").out
    assert WORDS in ferryman(f"show u{rows.quarantined} --texts --json").document()["body"]
    shown = ferryman(f"show {rows.queued} --texts --json").document()
    assert shown["params"]["text"] == WORDS


def test_show_tells_an_update_with_its_failure(ferryman: Typed, rows: Rows) -> None:
    told = ferryman(f"show u{rows.dead_update}").out
    assert "Where it failed\n  bot/handlers/ask.py:20 ask\nValueError\n" in told
    for same in (f"show --update {rows.dead_update}", f"dead show u{rows.dead_update}"):
        assert _first_line(ferryman(same).out) == _first_line(told)
    document = ferryman(f"show u{rows.dead_update} --json").document()
    assert document["state"] == "dead"
    assert "body" not in document


def test_a_call_is_no_update(ferryman: Typed, rows: Rows) -> None:
    assert ferryman("show --update c1").code == 2
    assert ferryman("show 4711").err == (
        "ferryman: there is no call c4711; it may have been forgotten\n"
    )


def test_no_output_steers_the_terminal(ferryman: Typed, rows: Rows) -> None:
    for line in ("status", "review list", f"show {rows.uncertain}", "dead list", "queue"):
        assert "\x1b" not in ferryman(line).out


@pytest.mark.parametrize("line", ["status", "queue", "review list", "dead list", "show c2"])
def test_every_table_fits_a_hundred_columns(line: str, ferryman: Typed, rows: Rows) -> None:
    assert max(map(len, ferryman(line).out.splitlines())) <= 100


def _flood(tx: Tx) -> None:
    cooling = Flood("c:7", "sendMessage", "bulk", 60_000, "chat", "adaptive", 5_000, 60_000, 0)
    floods.record(tx, BOT, cooling)


def test_floods_are_listed_with_what_each_policy_makes_of_them(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    site.write(_flood)
    [titles, line] = ferryman("floods").out.splitlines()
    assert titles.split() == [
        *("WHEN", "BOT", "LANE", "METHOD", "WAIT"),
        *("CHAT", "ADAPTIVE", "BOT", "SENT", "REFUSED"),
    ]
    assert re.search(r"main +c:7 +sendMessage +1 m +- +5 s \* +1 m +0 +0$", line)
    assert WORDS not in line
    document = ferryman("floods --json --bot main").document()
    [flood] = document["floods"]
    assert (flood["chosen"], flood["adaptive_ms"], flood["bot_ms"]) == ("adaptive", 5_000, 60_000)
    assert (flood["others_sent"], flood["others_flooded"]) == (0, 0)


def test_a_house_without_floods_says_so(ferryman: Typed, rows: Rows) -> None:
    assert ferryman("floods").out == "No flood is on record.\n"


def _limits(tx: Tx) -> None:
    rates.learn(tx, BOT, 12.8, reason="a flood of a bulk call")
    before: rates.LimitValues = {"chat_burst": 1, "flood_scope": "adaptive"}
    after: rates.LimitValues = {"chat_burst": 3, "flood_scope": "adaptive"}
    rates.record_change(tx, BOT, source="SIGHUP", before=before, after=after)
    spending.charge(tx, BOT, 25)


def test_status_shows_what_has_become_of_the_limits(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    site.write(_limits)
    told = ferryman("status").out
    learned = "main: floods have taught 12.8 bulk messages a second (a flood of a bulk call, "
    assert learned in told
    assert re.search(r"main: limits changed by SIGHUP .+ ago: chat_burst 1 → 3\n", told)
    assert "main: paid broadcasts have cost 2.5 Stars, or less" in told
    [bot] = ferryman("status --json").document()["bots"]
    assert bot["bulk_learned"]["bulk_per_second"] == 12.8
    assert bot["limits_changed"]["after"]["chat_burst"] == 3
    assert bot["paid_tenths"] == 25
