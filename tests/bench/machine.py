"""What the figures were measured on; without it they say nothing to anybody else."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from storage.database import library_version
from tests.bench.table import percentile

_SYNCS = 200
_PAGE_BYTES = 4096


def facts(state_dir: Path) -> list[str]:
    """Lines about processor, system, versions and the disk under `state_dir`."""
    cpus = os.cpu_count() or 1
    load_1min = os.getloadavg()[0]
    sqlite = ".".join(str(part) for part in library_version())
    packages = ", ".join(f"{name} {version(name)}" for name in ("starlette", "uvicorn", "aiohttp"))
    p50_ms, p99_ms = _sync_ms(state_dir)
    return [
        f"{cpus} x {_processor()}, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, SQLite {sqlite}, {packages}",
        f"disk, {_file_system(state_dir)}: a page synced in {p50_ms:.2f} ms, p99 {p99_ms:.2f} ms",
        f"load before the run: {load_1min:.1f}"
        + (" (others use this machine: trust the ratios only)" if load_1min > cpus / 2 else ""),
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _file_system(path: Path) -> str:
    mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    above = [fields for fields in mounts if path.resolve().is_relative_to(fields[1])]
    kind = max(above, key=lambda fields: len(fields[1]))[2]
    return "tmpfs (a sync costs nothing here)" if kind == "tmpfs" else kind


def _sync_ms(state_dir: Path) -> tuple[float, float]:
    file = state_dir / "sync-probe"
    took_ms = []
    with file.open("wb") as probe:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            probe.write(bytes(_PAGE_BYTES))
            probe.flush()
            os.fdatasync(probe.fileno())
            took_ms.append((time.perf_counter() - began) * 1000)
    file.unlink()
    return percentile(took_ms, 0.50), percentile(took_ms, 0.99)
