"""Who waits for a transaction, and how they are told what came of it.

Several transaction functions may be committed together, and several callers may have joined one of
them: each is told its own result, or its own error. Knows nothing of the disk.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Waiting:
    """Somebody who waits for a transaction: what it is given, what came of it, whom to tell."""

    item: Any
    told: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class Work:
    """A transaction function that waits for its turn to write, with all who have joined it.

    `run` is given the transaction and the items of those who joined. `point` names what is written
    (`storage.failpoint`).
    """

    run: Callable[[Any, Sequence[Any]], Sequence[Any]]
    joined: list[Waiting]
    point: str
    statement: tuple[str, Mapping[str, object]] | None = None
    """When the function runs just this one statement, which alone is a transaction by itself."""


def _all_of(batch: Sequence[Work]) -> Iterator[Waiting]:
    for work in batch:
        for waiting in work.joined:
            if not waiting.told.done():
                yield waiting


def tell_each(batch: Sequence[Work]) -> None:
    """Tell everyone what came of their own."""
    for waiting in _all_of(batch):
        if waiting.error is None:
            waiting.told.set_result(waiting.result)
        else:
            waiting.told.set_exception(waiting.error)


def tell_all(batch: Sequence[Work], error: BaseException) -> None:
    """Tell everyone that nothing was kept, unless they have an error of their own."""
    for waiting in _all_of(batch):
        waiting.told.set_exception(waiting.error or error)
