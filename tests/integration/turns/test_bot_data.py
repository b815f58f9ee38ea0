"""What a bot's handlers remember together: each turn sees its own, and nothing is ever lost."""

import asyncio
import json
import threading
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.ext import ContextTypes, MessageHandler, filters

from bot.turns.application import TurnApplication, TurnContext
from bot.turns.bot_data import LOSSES_MAX
from bot.turns.entries import Entries
from bot.turns.pickling import dumps, loads
from storage import turn_state
from storage.database import Tx
from storage.lifecycle import BotName, InboxState
from tests.integration.turns.stand import BOT, Context, Handler, Register, Stand, standing, until


async def stored(stand: Stand) -> dict[str, Any]:
    """The rows, as another process would read them."""
    rows = await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, "bot:"))
    return {scope: loads(data, stand.application.bot)[1] for scope, data in rows.items()}


def answering(
    handler: Handler, *, before: Callable[[TurnApplication], None] | None = None
) -> Register:
    def register(application: TurnApplication) -> None:
        if before is not None:
            before(application)
        application.add_handler(MessageHandler(filters.TEXT, handler))

    return register


async def count(update: Update, context: Context) -> None:
    assert update.message is not None
    context.bot_data["n"] = context.bot_data.get("n", 0) + 1
    context.bot_data.setdefault("names", []).append(update.message.text)
    await update.message.reply_text(str(context.bot_data["n"]))
    if update.message.text == "boom":
        raise ValueError


async def test_each_key_is_a_row_that_outlives_the_process(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(count)) as stand:
        await stand.hears("one")
        assert await stored(stand) == {"bot:'n'": 1, "bot:'names'": ["one"]}
    async with standing(tmp_path, answering(count)) as stand:
        await stand.receive(poll={"id": "filler"})
        await stand.hears("two")
        assert await stored(stand) == {"bot:'n'": 2, "bot:'names'": ["one", "two"]}


async def test_a_failed_turn_leaves_nothing_even_inside_a_list(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(count)) as stand:
        await stand.hears("one")
        await stand.hears("boom")
        await stand.hears("two", user=8)
        assert await stored(stand) == {"bot:'n'": 2, "bot:'names'": ["one", "two"]}


async def test_what_a_failing_turn_has_in_hand_is_seen_by_nobody(tmp_path: Path) -> None:
    held, begun = asyncio.Event(), asyncio.Event()

    async def hold(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text == "hold":
            context.bot_data["half"] = "done"
            context.bot_data["names"].append("half")
            begun.set()
            await held.wait()
            raise ValueError
        await count(update, context)

    async with standing(tmp_path, answering(hold)) as stand:
        await stand.hears("one")
        holding = asyncio.ensure_future(stand.hears("hold", user=20))
        await begun.wait()
        await stand.hears("two")
        held.set()
        await holding
        assert await stored(stand) == {"bot:'n'": 2, "bot:'names'": ["one", "two"]}


class Gates:
    """Lets a test hold handlers where it wants."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.open: dict[str, asyncio.Event] = {}

    async def __call__(self, update: Update, context: Context) -> None:
        assert update.message is not None
        name = update.message.text or ""
        self.runs.append(name)
        seen = context.bot_data.get("n", 0)
        if name in self.open:
            await self.open[name].wait()
        context.bot_data["n"] = seen + 1
        await update.message.reply_text(name)


async def test_a_turn_that_was_too_late_runs_again_from_nothing(tmp_path: Path) -> None:
    gates = Gates()
    gates.open["slow"] = asyncio.Event()
    async with standing(tmp_path, answering(gates)) as stand:
        slow = asyncio.ensure_future(stand.hears("slow", user=20))
        await until(lambda: "slow" in gates.runs)
        await stand.hears("quick")
        gates.open["slow"].set()
        record = await stand.record(await slow)
        assert gates.runs == ["slow", "quick", "slow"]
        assert await stored(stand) == {"bot:'n'": 2}
        assert await stand.texts() == ["quick", "slow"]
        assert (record.state, record.claims) == (InboxState.DONE, 1)


async def test_a_slow_turn_over_a_hot_key_gets_through_after_two_losses(tmp_path: Path) -> None:
    """Others go on until they want to write what it needs unchanged; nobody loses an increment."""
    gates = Gates()
    async with standing(tmp_path, answering(gates)) as stand:
        gates.open["slow"] = asyncio.Event()
        slow = asyncio.ensure_future(stand.hears("slow", user=20))
        for loss in range(1, LOSSES_MAX + 1):
            await until(lambda: gates.runs.count("slow") == loss)  # noqa: B023  # awaited right here
            await stand.hears(f"quick{loss}", user=30 + loss)
            held, gates.open["slow"] = gates.open["slow"], asyncio.Event()
            held.set()
        await until(lambda: gates.runs.count("slow") == LOSSES_MAX + 1)
        waiting = [asyncio.ensure_future(stand.hears(f"w{n}", user=40 + n)) for n in range(5)]
        await until(lambda: sum(run.startswith("w") for run in gates.runs) == 5)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        gates.open["slow"].set()
        await asyncio.gather(slow, *waiting)
        assert gates.runs.count("slow") == LOSSES_MAX + 1
        assert await stored(stand) == {"bot:'n'": LOSSES_MAX + 1 + 5}


async def test_who_changes_something_else_waits_for_nobody(tmp_path: Path) -> None:
    gates = Gates()

    async def either(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text == "other":
            context.bot_data["other"] = context.bot_data.get("n")
            return
        await gates(update, context)

    async with standing(tmp_path, answering(either)) as stand:
        gates.open["slow"] = asyncio.Event()
        slow = asyncio.ensure_future(stand.hears("slow", user=20))
        for loss in range(1, LOSSES_MAX + 1):
            await until(lambda: gates.runs.count("slow") == loss)  # noqa: B023  # awaited right here
            await stand.hears("quick", user=30)
            held, gates.open["slow"] = gates.open["slow"], asyncio.Event()
            held.set()
        await until(lambda: gates.runs.count("slow") == LOSSES_MAX + 1)
        await stand.hears("other", user=50)
        assert (await stored(stand))["bot:'other'"] == LOSSES_MAX
        gates.open["slow"].set()
        await slow


async def test_what_was_only_read_counts_too(tmp_path: Path) -> None:
    """Two who each read what the other writes can't both have been first."""
    held = asyncio.Event()
    runs = []

    async def cross(update: Update, context: Context) -> None:
        assert update.message is not None
        mine, other = (update.message.text or "").split()
        runs.append(mine)
        seen = context.bot_data.get(other)
        await held.wait()
        context.bot_data[mine] = f"saw {seen}"

    async with standing(tmp_path, answering(cross)) as stand:
        both = [asyncio.ensure_future(stand.hears(t, user=u)) for t, u in (("a b", 1), ("b a", 2))]
        await until(lambda: len(runs) == 2)
        held.set()
        await asyncio.gather(*both)
        found = await stored(stand)
        assert sorted(found.values()) == ["saw None", "saw saw None"]


async def test_error_handlers_have_it_in_a_turn_of_their_own(tmp_path: Path) -> None:
    async def note(_update: object, context: Context) -> None:
        context.bot_data["errors"] = context.bot_data.get("errors", 0) + 1

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, count))
        application.add_error_handler(note)

    async with standing(tmp_path, register) as stand:
        await asyncio.gather(*(stand.hears("boom", user=user) for user in range(1, 9)))
        assert await stored(stand) == {"bot:'errors'": 8}


async def test_what_has_no_bytes_is_the_same_object_for_all_and_is_not_kept(tmp_path: Path) -> None:
    pool, lock = threading.Lock(), asyncio.Lock()
    seen: list[object] = []

    def put(application: TurnApplication) -> None:
        application.bot_data["pool"] = pool
        application.bot_data["lock"] = lock
        application.bot_data["limits"] = {"daily": 5}

    async def look(update: Update, context: Context) -> None:
        seen.extend([context.bot_data["pool"], context.bot_data["lock"]])
        assert context.bot_data["limits"] == {"daily": 5}
        assert {"pool", "lock", "limits"} <= context.bot_data.keys()
        if "lazy" not in context.bot_data:
            context.bot_data["lazy"] = threading.Lock()
        seen.append(context.bot_data["lazy"])

    async with standing(tmp_path, answering(look, before=put)) as stand:
        await stand.hears("one")
        await stand.hears("two", user=8)
        assert seen[0] is seen[3] is pool
        assert seen[1] is seen[4] is lock
        assert seen[2] is seen[5]
        assert await stored(stand) == {"bot:'limits'": {"daily": 5}}


async def test_what_the_process_puts_in_overrides_and_what_it_only_offers_does_not(
    tmp_path: Path,
) -> None:
    def put(application: TurnApplication) -> None:
        application.bot_data["names"] = []
        application.bot_data.setdefault("n", 0)
        application.bot_data.setdefault("fresh", 1)

    async with standing(tmp_path, answering(count)) as stand:
        await stand.hears("one")
    async with standing(tmp_path, answering(count, before=put)) as stand:
        assert await stored(stand) == {"bot:'n'": 1, "bot:'names'": [], "bot:'fresh'": 1}
        assert dict(stand.application.bot_data) == {"n": 1, "names": [], "fresh": 1}


async def test_a_job_has_its_own_transaction(tmp_path: Path) -> None:
    async def tick(context: Context) -> None:
        context.bot_data["ticks"] = context.bot_data.get("ticks", 0) + 1
        context.bot_data.setdefault("list", []).append("tick")

    async def arm(update: Update, context: Context) -> None:
        context.job_queue.run_once(tick, 0)

    async with standing(tmp_path, answering(arm)) as stand:
        await stand.hears("one")
        while len(await stored(stand)) < 2:  # noqa: ASYNC110  # nobody tells when a job has run
            await asyncio.sleep(0)
        assert await stored(stand) == {"bot:'ticks'": 1, "bot:'list'": ["tick"]}


async def test_a_task_that_outlives_its_turn_writes_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.running.TASKS_GRACE_S", 0.01)
    go_on = asyncio.Event()

    async def late(context: Context) -> None:
        mine = context.bot_data
        await go_on.wait()
        mine["late"] = "said"
        context.bot_data["seen"] = context.bot_data["n"]
        mine["names"].append("late")

    async def start(update: Update, context: Context) -> None:
        await count(update, context)
        context.application.create_task(late(context))

    async with standing(tmp_path, answering(start)) as stand:
        await stand.hears("one")
        assert set(await stored(stand)) == {"bot:'n'", "bot:'names'"}
        go_on.set()
        await until(lambda: not stand.handling.followers)
        await stand.application.shared.flush()
        assert await stored(stand) == {
            "bot:'n'": 1,
            "bot:'names'": ["one", "late"],
            "bot:'late'": "said",
            "bot:'seen'": 1,
        }


async def test_who_looks_at_all_keys_has_seen_a_new_one(tmp_path: Path) -> None:
    held = asyncio.Event()
    runs = []

    async def total(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text != "sum":
            context.bot_data[update.message.text] = 1
            return
        runs.append("sum")
        everything = sum(value for key, value in context.bot_data.items() if key != "sum")
        await held.wait()
        context.bot_data["sum"] = everything

    async with standing(tmp_path, answering(total)) as stand:
        await stand.hears("a")
        summing = asyncio.ensure_future(stand.hears("sum", user=20))
        await until(lambda: bool(runs))
        await stand.hears("b")
        held.set()
        await summing
        assert (await stored(stand))["bot:'sum'"] == 2


class Shop:
    """A `bot_data` of its author's own."""

    def __init__(self) -> None:
        self.sold = 0
        self.lock = asyncio.Lock()
        self.pool: object = None


async def sell(update: Update, context: Context) -> None:
    assert update.message is not None
    shop = context.bot_data
    assert isinstance(shop, Shop)
    async with shop.lock:
        shop.sold += 1
    await update.message.reply_text(f"{shop.sold} {shop.pool is not None}")
    if update.message.text == "boom":
        raise ValueError


async def test_bot_data_of_a_class_of_ones_own_is_one_row(tmp_path: Path) -> None:
    types: ContextTypes[Any, Any, Any, Any] = ContextTypes(context=TurnContext, bot_data=Shop)

    def put(application: TurnApplication) -> None:
        shop: Any = application.bot_data
        shop.pool = threading.Lock()

    said = [["1 True", "2 True", "3 True"], ["4 True", "5 True", "6 True"]]
    for start in (0, 1):
        async with standing(
            tmp_path,
            answering(sell, before=put),
            configure=lambda built: built.context_types(types),
        ) as stand:
            for _ in range(10 * start):
                await stand.receive(poll={"id": "filler"})
            await asyncio.gather(*(stand.hears("one", user=user) for user in (7, 8)))
            await stand.hears("boom")
            await stand.hears("three")
            assert (await stand.texts())[-3:] == said[start]
            rows = await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, "bot:"))
            assert set(rows) == {"bot:*"}


class Counted(dict[str, int]):
    """Counts what is written to a table."""


def written_rows(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    save = turn_state.save

    def counting(tx: Tx, bot: BotName, changes: Mapping[str, bytes | None]) -> None:
        for scope in changes:
            counted[scope] = counted.get(scope, 0) + 1
        save(tx, bot, changes)

    monkeypatch.setattr("storage.turn_state.save", counting)
    return counted


async def test_one_users_turn_writes_one_row_however_much_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def remember(update: Update, context: Context) -> None:
        context.user_data["n"] = context.user_data.get("n", 0) + 1

    async with standing(tmp_path, answering(remember)) as stand:
        await stand.hears("one")
        data = await stand.db.read(lambda tx: turn_state.load(tx, BOT, ["user:7"]))
        users = {f"user:{user}": data["user:7"] for user in range(100, 10_100)}
        await stand.db.write(lambda tx: turn_state.save(tx, BOT, users))
        for key in range(5_000):
            stand.application.bot_data[f"key{key}"] = key
        await stand.application.shared.flush()
        rows = written_rows(monkeypatch)
        thawed: list[Hashable] = []
        thaw = Entries.thaw

        def noting(entries: Entries, key: Hashable) -> object:
            thawed.append(key)
            return thaw(entries, key)

        monkeypatch.setattr(Entries, "thaw", noting)
        await stand.hears("two")
        assert rows == {"user:7": 1}
        assert thawed == []


async def test_it_can_be_used_like_any_dictionary(tmp_path: Path) -> None:
    async def use(update: Update, context: Context) -> None:
        data = context.bot_data
        assert isinstance(data, dict)
        assert json.loads(json.dumps(data)) == {"a": 1, "b": [2]}
        assert dict(data) == {**data} == data.copy() == data == {"a": 1, "b": [2]}
        assert data != {}
        assert (list(data), len(data), bool(data)) == (["a", "b"], 2, True)
        assert list(reversed(data)) == ["b", "a"]
        assert "{a}".format_map(data) == "1"
        assert data | {"c": 3} == {"a": 1, "b": [2], "c": 3}
        assert {"a": 0} | data == {"a": 1, "b": [2]}
        assert repr(data) == "{'a': 1, 'b': [2]}"
        data.update({"c": 3}, d=4)
        assert data.popitem() == ("d", 4)
        assert (data.pop("c"), data.pop("c", None)) == (3, None)
        with pytest.raises(KeyError):
            data["c"]
        with pytest.raises(KeyError):
            del data["c"]
        context.application.bot_data |= {"e": 5}
        assert sorted(data.keys()) == ["a", "b", "e"]
        context.application.bot_data = {"f": 6}
        assert list(data.items()) == [("f", 6)]
        data.clear()
        assert not data
        data[("tuple", 1)] = data[7] = None

    def put(application: TurnApplication) -> None:
        application.bot_data.update(a=1, b=[2])

    async with standing(tmp_path, answering(use, before=put)) as stand:
        update = await stand.hears("one")
        assert (await stand.record(update)).reason is None
        assert dict(stand.application.bot_data) == {("tuple", 1): None, 7: None}


async def test_a_turn_that_was_cut_off_after_its_commit_leaves_nobody_losing_for_ever(
    tmp_path: Path,
) -> None:
    """What this process knows of the rows is then not what is stored: it finds out, and reads."""
    async with standing(tmp_path, answering(count)) as stand:
        await stand.hears("one")
        bot = stand.application.bot
        row = {"bot:'n'": dumps(("n", 5), bot)}
        await stand.db.write(lambda tx: turn_state.save(tx, BOT, row))
        await stand.hears("two")
        assert (await stored(stand))["bot:'n'"] == 6


async def test_rows_of_another_class_of_bot_data_are_no_part_of_it(tmp_path: Path) -> None:
    async def clear(update: Update, context: Context) -> None:
        context.bot_data.clear()
        context.bot_data["n"] = len(context.bot_data)

    async with standing(tmp_path, answering(clear)) as stand:
        await stand.db.write(
            lambda tx: turn_state.save(tx, BOT, {"bot:*": dumps(1, stand.application.bot)})
        )
        await stand.application.shared.load()
        await stand.hears("one")
        assert dict(stand.application.bot_data) == {"n": 0}
