"""The store of contents: whole or not there, kept once, never removed from under somebody."""

import hashlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from storage.blobs import CHUNK_BYTES, Blobs
from storage.errors import FileTooLarge

LATER_MS = 4_000_000_000_000


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def test_a_content_is_kept_under_its_hash_and_only_once(blobs: Blobs, tmp_path: Path) -> None:
    sha256 = blobs.keep(b"hello")
    assert sha256 == hashlib.sha256(b"hello").hexdigest()
    assert blobs.keep(b"hello") == sha256
    assert blobs.path(sha256).read_bytes() == b"hello"
    assert files_in(tmp_path) == [blobs.path(sha256)]
    assert blobs.size_bytes(sha256) == 5


def test_a_handle_is_read_from_where_it_stands_a_piece_at_a_time(blobs: Blobs) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 100)
    handle = io.BytesIO(b"read already" + data)
    handle.seek(12)
    sha256, size_bytes = blobs.keep_from(handle, bytes_max=len(data))
    assert (blobs.path(sha256).read_bytes(), size_bytes) == (data, len(data))


def test_what_is_too_long_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    with pytest.raises(FileTooLarge):
        blobs.keep_from(io.BytesIO(b"x" * 11), bytes_max=10)
    assert not files_in(tmp_path)


def test_a_source_that_fails_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise OSError(f"unreadable for {size} bytes")

    with pytest.raises(OSError, match="unreadable"):
        blobs.keep_from(Broken(), bytes_max=10)
    assert not files_in(tmp_path)


def test_nobody_else_may_read_a_content(blobs: Blobs, tmp_path: Path) -> None:
    path = blobs.path(blobs.keep(b"private"))
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced, and when a name is given."""
    order: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        order.append(path.name if path.is_dir() else "content")
        fsync(handle)

    def renamed(path: Path, target: Path) -> Path:
        order.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    return order


def test_a_content_is_synced_before_it_has_its_name_and_all_folders_after(
    blobs: Blobs, order: list[str], tmp_path: Path
) -> None:
    """Otherwise a power cut leaves a row whose file is empty, or not there."""
    folder = blobs.keep(b"hello")[:2]
    assert order == ["content", "rename", folder, "blobs", tmp_path.name]


def test_what_a_killed_process_has_named_is_durable_once_somebody_keeps_it(
    blobs: Blobs, order: list[str], tmp_path: Path
) -> None:
    """It may have made the folder, or given the name, and died before either was durable."""
    sha256 = hashlib.sha256(b"hello").hexdigest()
    path = blobs.path(sha256)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hello")
    blobs.keep(b"hello")
    assert order == [sha256[:2], "blobs", tmp_path.name]


def test_only_what_was_kept_long_ago_is_removed(blobs: Blobs) -> None:
    sha256 = blobs.keep(b"hello")
    os.utime(blobs.path(sha256), (1_000, 1_000))
    assert list(blobs.aged(sha256[:2], before_ms=1_000_001)) == [sha256]
    blobs.keep(b"hello")
    assert not blobs.aged(sha256[:2], before_ms=1_000_001)
    assert not blobs.remove(sha256, before_ms=1_000_001)
    assert blobs.remove(sha256, before_ms=LATER_MS)
    assert blobs.size_bytes(sha256) is None
    assert not blobs.remove(sha256, before_ms=LATER_MS)


def test_what_was_never_finished_is_removed(blobs: Blobs, tmp_path: Path) -> None:
    blobs.keep(b"hello")
    left = tmp_path / "blobs" / "new" / "tmpx"
    left.write_bytes(b"half")
    assert blobs.remove_unfinished(before_ms=0) == 0
    assert blobs.remove_unfinished(before_ms=LATER_MS) == 1
    assert not left.exists()


def test_a_process_killed_while_it_writes_leaves_no_name(blobs: Blobs, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from storage.blobs import Blobs\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path(sys.argv[1]).mkdir()\n"
        "(Path(sys.argv[1]) / 'new').mkdir()\n"
        "Blobs(Path(sys.argv[1])).keep(b'hello')\n"
    )
    folder = tmp_path / "other"
    died = subprocess.run([sys.executable, "-c", program, str(folder)], check=False, timeout=60)
    assert died.returncode < 0
    assert Blobs(folder).size_bytes(hashlib.sha256(b"hello").hexdigest()) is None
    assert len(files_in(folder)) == 1


def test_who_keeps_a_content_while_it_is_removed_has_it_in_the_end(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He may not find it in the last moment before it goes."""
    sha256 = blobs.keep(b"hello")
    os.utime(blobs.path(sha256), (1_000, 1_000))
    keeper = threading.Thread(target=blobs.keep, args=(b"hello",))
    unlink = Path.unlink

    def unlink_late(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002  # pathlib's own signature
        if path == blobs.path(sha256):
            keeper.start()
            keeper.join(0.2)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_late)
    assert blobs.remove(sha256, before_ms=2_000_000)
    keeper.join()
    assert blobs.size_bytes(sha256) == 5
