"""Who has reserved something has it until he gives it back; everybody else goes on."""

import asyncio

import pytest

from bot.turns.reservations import Keys, Reservations


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("held", "wanted", "waits"),
    [
        (frozenset("ab"), frozenset("bc"), True),
        (frozenset("ab"), frozenset("cd"), False),
        (None, frozenset("a"), True),
        (frozenset("a"), None, True),
    ],
)
async def test_only_what_meets_a_reservation_waits(
    held: Keys, wanted: Keys, *, waits: bool
) -> None:
    reservations, over = Reservations(), asyncio.Event()

    async def hold() -> None:
        await reservations.reserve(held)
        await reservations.until_free(held)
        await over.wait()
        reservations.release()

    holding = asyncio.ensure_future(hold())
    await settled()
    other = asyncio.ensure_future(reservations.until_free(wanted))
    await settled()
    assert other.done() is not waits
    over.set()
    await asyncio.wait_for(other, 1)
    await holding


async def test_two_who_want_each_others_never_wait_for_each_other() -> None:
    reservations, done = Reservations(), []

    async def turn(first: Keys, second: Keys) -> None:
        await reservations.reserve(first)
        await settled()
        await reservations.reserve(second)
        done.append(second)
        reservations.release()

    a, both = frozenset("a"), frozenset("ab")
    await asyncio.wait_for(asyncio.gather(turn(a, both), turn(frozenset("b"), both)), 1)
    assert done == [both, both]


async def test_two_who_have_something_never_wait_for_each_other() -> None:
    reservations, done = Reservations(), []

    async def turn(mine: Keys, wanted: Keys) -> None:
        await reservations.reserve(mine)
        await settled()
        await reservations.until_free(wanted)
        done.append(wanted)
        reservations.release()

    a, b = frozenset("a"), frozenset("b")
    await asyncio.wait_for(asyncio.gather(turn(a, b), turn(b, a)), 1)
    assert done == [b, a]
