"""getUpdates, setWebhook and the queue of updates behind both."""

import pytest

from tests.simulator.limits import OFF
from tests.simulator.model import Telegram
from tests.simulator.state import UPDATE_ID_MAX
from tests.simulator.updates import KINDS, expires_at_ms, kind_of, queue_of, wanted
from tests.unit.simulator.conftest import TOKEN, Town

HOOK = "https://bot.example.org/telegram/main"
DAY_MS = 86_400_000


def ids(updates: list[dict[str, int]]) -> list[int]:
    return [each["update_id"] for each in updates]


def test_updates_are_numbered_one_after_the_other_from_somewhere(town: Town) -> None:
    for word in ("a", "b"):
        town.telegram.people.says(town.ada, word, bot_id=town.bot.id)
    first, *rest = ids(town.call("getUpdates"))
    assert 2_000_001 <= first <= 1_000_000_000
    assert rest == [first + 1, first + 2]


def test_equal_seeds_number_equally(town: Town) -> None:
    other = Telegram(town.clock, limits=OFF, seed=0)
    another = Telegram(town.clock, limits=OFF, seed=1)
    assert other.bot(TOKEN).next_update_id != another.bot(TOKEN).next_update_id
    assert (
        Telegram(town.clock, seed=1).bot(TOKEN).next_update_id == another.bot(TOKEN).next_update_id
    )


def test_an_offset_confirms_what_lies_before_it(town: Town) -> None:
    town.telegram.people.says(town.ada, "b", bot_id=town.bot.id)
    first, second = ids(town.call("getUpdates"))
    assert ids(town.call("getUpdates", offset=first)) == [first, second]
    assert ids(town.call("getUpdates", offset=second)) == [second]

    # Confirmed is forgotten, whatever offset comes later.
    assert ids(town.call("getUpdates", offset=first)) == [second]
    assert town.telegram.ledger.ends(town.bot.id) == {first: "confirmed"}


def test_a_negative_offset_counts_from_the_end(town: Town) -> None:
    for word in ("b", "c"):
        town.telegram.people.says(town.ada, word, bot_id=town.bot.id)
    everything = ids(town.call("getUpdates", limit=100))
    assert ids(town.call("getUpdates", offset=-1)) == everything[-1:]


def test_a_limit_is_kept(town: Town) -> None:
    town.telegram.people.says(town.ada, "b", bot_id=town.bot.id)
    assert len(town.call("getUpdates", limit=1)) == 1


def test_a_long_poll_ends_with_the_first_update(town: Town) -> None:
    offset = ids(town.call("getUpdates"))[0] + 1
    reply = town.reply("getUpdates", offset=offset, timeout=30)
    assert reply.waiting is not None
    assert reply.waiting.until_ms == town.clock.now_ms() + 30_000

    town.telegram.people.says(town.ada, "b", bot_id=town.bot.id)
    answer = reply.waiting.again()
    assert answer.waiting is None
    assert b'"text":"b"' in answer.body


def test_a_long_poll_ends_empty_when_its_time_is_up(town: Town) -> None:
    offset = ids(town.call("getUpdates"))[0] + 1
    reply = town.reply("getUpdates", offset=offset, timeout=30)
    town.clock.advance_ms(30_000)
    assert reply.waiting is not None
    assert reply.waiting.again().body == b'{"ok":true,"result":[]}'


@pytest.mark.parametrize(
    ("method", "form", "words"),
    [
        ("getUpdates", {}, b"Conflict: terminated by other getUpdates request; make sure that"),
        ("setWebhook", {"url": HOOK}, b"Conflict: terminated by setWebhook request"),
    ],
)
def test_a_long_poll_is_ended_by_another_and_by_a_webhook(
    town: Town, method: str, form: dict[str, str], words: bytes
) -> None:
    offset = ids(town.call("getUpdates"))[0] + 1
    reply = town.reply("getUpdates", offset=offset, timeout=30)
    town.reply(method, **form)

    assert reply.waiting is not None
    answer = reply.waiting.again()
    assert answer.status == 409
    assert words in answer.body


def test_there_are_no_get_updates_while_a_webhook_is_set(town: Town) -> None:
    town.call("setWebhook", url=HOOK)
    assert town.refusal("getUpdates") == (
        "409 Conflict: can't use getUpdates method while webhook is active; "
        "use deleteWebhook to delete the webhook first"
    )
    town.call("deleteWebhook")
    assert town.call("getUpdates")


def test_setting_the_same_webhook_again_changes_nothing(town: Town) -> None:
    assert b'"description":"Webhook was set"' in town.reply("setWebhook", url=HOOK).body
    town.clock.advance_ms(1_000)
    again = town.reply("setWebhook", url=HOOK)
    assert b'"description":"Webhook is already set"' in again.body


def test_a_webhook_can_be_set_once_a_second(town: Town) -> None:
    town.call("setWebhook", url=HOOK)
    town.clock.advance_ms(999)
    reply = town.reply("setWebhook", url=HOOK)
    assert (reply.status, reply.headers["Retry-After"]) == (429, "1")


def test_deleting_a_webhook_keeps_what_waits_unless_told_otherwise(town: Town) -> None:
    town.call("setWebhook", url=HOOK)
    assert b"Webhook was deleted" in town.reply("deleteWebhook").body
    assert b"Webhook is already deleted" in town.reply("deleteWebhook").body
    assert town.call("getWebhookInfo")["pending_update_count"] == 1

    town.call("deleteWebhook", drop_pending_updates=True)
    assert town.call("getWebhookInfo") == {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": 0,
    }
    assert list(town.telegram.ledger.ends(town.bot.id).values()) == ["dropped"]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"url": "ftp://x"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        ({"url": HOOK, "secret_token": "x" * 257}, "secret token is too long"),
        ({"url": HOOK, "secret_token": "a b"}, "secret token contains unallowed characters"),
    ],
)
def test_a_broken_webhook_is_refused(town: Town, form: dict[str, str], words: str) -> None:
    assert town.refusal("setWebhook", **form) == f"400 Bad Request: {words}"


def test_the_webhooks_particulars_are_shown(town: Town) -> None:
    town.call("setWebhook", url=HOOK, max_connections=500, allowed_updates=["message", "nonsense"])
    info = town.call("getWebhookInfo")
    assert (info["url"], info["max_connections"]) == (HOOK, 100)
    assert info["allowed_updates"] == ["message"]


def test_unwanted_kinds_are_never_queued_and_wanted_ones_stay_wanted(town: Town) -> None:
    town.call("setWebhook", url=HOOK, allowed_updates=["message"])
    town.telegram.people.blocks(town.ada, bot_id=town.bot.id)
    assert town.call("getWebhookInfo")["pending_update_count"] == 1

    # Left out, the choice stays; without any known name the default comes back.
    town.call("deleteWebhook")
    town.call("getUpdates")
    assert town.call("getWebhookInfo")["allowed_updates"] == ["message"]
    town.call("getUpdates", allowed_updates=[])
    assert "allowed_updates" not in town.call("getWebhookInfo")


def test_the_default_set_leaves_out_members_and_reactions() -> None:
    assert {kind for kind in KINDS if not wanted(kind, None)} == {
        "chat_member",
        "message_reaction",
        "message_reaction_count",
    }
    assert wanted("a_kind_of_the_future", None)
    assert not wanted("a_kind_of_the_future", ["message"])


def test_when_the_numbers_run_out_everything_pending_is_dropped(town: Town) -> None:
    town.bot.next_update_id = UPDATE_ID_MAX
    town.telegram.people.says(town.ada, "b", bot_id=town.bot.id)
    (only,) = ids(town.call("getUpdates"))
    assert only < 1_000_000_001


def test_messages_and_buttons_of_one_chat_wait_in_different_queues() -> None:
    chat = {"chat": {"id": 5}, "from": {"id": 9}}
    assert queue_of("message", chat) == queue_of("edited_message", chat) == "chat:5"
    assert queue_of("callback_query", chat) == "callback:9"
    assert queue_of("my_chat_member", chat) != queue_of("message", chat)
    assert queue_of("poll", {"id": "p"}) == queue_of("poll_answer", {"poll_id": "p"})
    assert queue_of("shipping_query", chat) == queue_of("pre_checkout_query", chat)


def test_a_message_ages_from_its_own_date_and_a_query_from_now() -> None:
    now_ms = 10 * DAY_MS
    sent = {"date": now_ms // 1000 - 3_600}
    assert expires_at_ms("message", sent, now_ms) == now_ms + DAY_MS - 3_600_000
    edited = {**sent, "edit_date": now_ms // 1000}
    assert expires_at_ms("edited_message", edited, now_ms) == now_ms + DAY_MS
    assert expires_at_ms("callback_query", {}, now_ms) == now_ms + 150_000
    assert expires_at_ms("inline_query", {}, now_ms) == now_ms + 30_000


def test_the_kind_of_an_update_is_its_first_object() -> None:
    assert kind_of({"note": 5, "message": {"text": "x"}, "poll": {}}) == ("message", {"text": "x"})
    assert kind_of({}) == ("", {})
