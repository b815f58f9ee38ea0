"""Files that go with calls: which contents a row needs, and what Telegram calls them.

Plain functions of a transaction. A content itself is in `storage/blobs.py`, and there before any
row needs it. A `file_id` is worth something to the bot that got it and to no other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from storage.database import Tx
from storage.lifecycle import BotName, OutboxId
from storage.outgoing import FilePart


class FileKey(NamedTuple):
    """What makes two uploads of a bot the same file at Telegram.

    `kind`: as what it was sent, `photo` or `document` for instance, with all that is kept with the
    file and was said along with it.
    """

    sha256: str
    kind: str
    filename: str


@dataclass(frozen=True, slots=True)
class Attached:
    """The files of a row. `is_outdated`: it named one by a `file_id` before, and was refused."""

    parts: tuple[FilePart, ...]
    is_outdated: bool


class Looked(NamedTuple):
    """How far through the contents somebody has looked, the longest kept first."""

    kept_at_ms: int
    sha256: str


BEGINNING: Final = Looked(-1, "")


def attach(tx: Tx, row: OutboxId, parts: Sequence[FilePart]) -> None:
    """Let these files go with a call; their contents are in the store already."""
    for part in parts:
        content = {"content": part.sha256, "size_bytes": part.size_bytes, "now_ms": tx.now_ms()}
        tx.run("files.keep_blob", content)
        told = {"outbox_id": row, "part": part.part, "filename": part.filename, "mime": part.mime}
        tx.run("files.attach", {**told, "content": part.sha256})


def of_rows(tx: Tx, rows: Sequence[OutboxId]) -> Mapping[OutboxId, Attached]:
    """The files of these rows; a row without any is not in it."""
    found: dict[OutboxId, tuple[list[FilePart], bool]] = {}
    for row in tx.rows("files.of_rows", {"ids": json.dumps(rows)}):
        part = FilePart(
            part=row["part"],
            filename=row["filename"],
            mime=row["mime"],
            sha256=row["sha256"],
            size_bytes=row["size_bytes"] or 0,
        )
        parts, _ = found.setdefault(OutboxId(row["outbox_id"]), ([], bool(row["is_outdated"])))
        parts.append(part)
    return {row: Attached(tuple(parts), outdated) for row, (parts, outdated) in found.items()}


def known(tx: Tx, bot: BotName, keys: Sequence[FileKey]) -> Mapping[FileKey, str]:
    """The `file_id`s by which Telegram knows these files of a bot, where it does."""
    if not keys:
        return {}
    rows = tx.rows("files.known", {"bot": bot, "files": json.dumps(keys)})
    return {FileKey(row["sha256"], row["kind"], row["filename"]): row["file_id"] for row in rows}


def learn(tx: Tx, bot: BotName, named: Mapping[FileKey, str]) -> None:
    """Remember what Telegram calls these files."""
    for key, file_id in named.items():
        tx.run("files.learn", {**_told(bot, key, file_id), "now_ms": tx.now_ms()})


def forget(tx: Tx, bot: BotName, named: Mapping[FileKey, str]) -> None:
    """Forget names that Telegram has refused, unless they were learned anew since."""
    for key, file_id in named.items():
        tx.run("files.forget", _told(bot, key, file_id))


def release(tx: Tx, rows: Sequence[OutboxId]) -> None:
    """Let go of the files of rows that need them no more: they were sent, or are forgotten."""
    tx.run("files.release", {"ids": json.dumps(rows)})


def aged(tx: Tx, after: Looked, *, before_ms: int, limit: int) -> tuple[Sequence[str], Looked]:
    """Contents that no row needs, of the next `limit` that nobody has kept since `before_ms`.

    Also how far it has looked; that is the beginning again when there was nothing left to look at.
    """
    params = {"after_ms": after.kept_at_ms, "after": after.sha256, "before_ms": before_ms}
    rows = tx.rows("files.aged", {**params, "limit": limit})
    free = [str(row["sha256"]) for row in rows if row["is_free"]]
    if len(rows) < limit:
        return free, BEGINNING
    return free, Looked(int(rows[-1]["kept_at_ms"]), str(rows[-1]["sha256"]))


def forget_blobs(tx: Tx, hashes: Sequence[str], *, before_ms: int) -> Sequence[str]:
    """Forget these contents; the hashes of those that were, for the store to remove.

    Only what no row needs by now and was not kept since `before_ms`: a row for a newer one may
    still be committed.
    """
    params = {"hashes": json.dumps([*hashes]), "before_ms": before_ms}
    return [str(row["sha256"]) for row in tx.rows("files.forget_blobs", params)]


def kept(tx: Tx, hashes: Sequence[str]) -> frozenset[str]:
    """Which of these contents have a row."""
    rows = tx.rows("files.kept", {"hashes": json.dumps(hashes)})
    return frozenset(str(row["sha256"]) for row in rows)


def prune_ids(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget up to `limit` names that were learned before `before_ms`."""
    return tx.run("files.prune_ids", {"before_ms": before_ms, "limit": limit})


def _told(bot: BotName, key: FileKey, file_id: str) -> dict[str, object]:
    return {
        "bot": bot,
        "content": key.sha256,
        "kind": key.kind,
        "filename": key.filename,
        "file_id": file_id,
    }
