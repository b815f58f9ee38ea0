"""What a process costs: its share of a core and its memory, as the kernel counts them."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KIB_PER_MB = 1_000_000 / 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process in megabytes, now and at most so far."""

    now_mb: float
    peak_mb: float


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, all its threads together."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    # The second field is the program's name, which may hold anything.
    fields = stat.rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / _TICKS_PER_S


def memory(pid: int) -> Memory:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    kib = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in status.splitlines())
        if name in ("VmRSS", "VmHWM")
    }
    return Memory(kib["VmRSS"] / _KIB_PER_MB, kib["VmHWM"] / _KIB_PER_MB)
