"""Where and with what a run was made: printed above every result."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw

from benchmarks import envs
from benchmarks.envs import ROOT, WORK, PeerEnv


def header(area: str, quick: bool, own: dict[str, str]) -> dict[str, str]:
    """Facts about this run, in the order in which they are printed; `own` are the area's."""
    size = "quick" if quick else "full"
    return {
        "run": f"scripts/bench {area} ({size}), {time.strftime('%Y-%m-%d %H:%M %Z')}",
        "source": _source(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release()}, load {_load()}",
        "disk": _disk(),
        "software": f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, "
        + ", ".join(_version(package) for package in ("apsw", "msgspec", "zstandard", "clew")),
        "peers": ", ".join(map(_peer, envs.of(area).values())) or "none",
        **own,
    }


def flush_milliseconds(count: int = 40) -> float:
    """The median time of a flush of 12 KiB: what the disk was like during the run."""
    flush = getattr(os, "fdatasync", os.fsync)
    WORK.mkdir(exist_ok=True)
    samples: list[float] = []
    with tempfile.TemporaryFile(dir=WORK) as file:
        for _ in range(count):
            started = time.perf_counter()
            os.pwrite(file.fileno(), b"\0" * 12_288, 0)
            flush(file.fileno())
            samples.append(time.perf_counter() - started)
    return statistics.median(samples) * 1e3


def _disk() -> str:
    free = os.statvfs(WORK if WORK.exists() else ROOT)
    free_gigabytes = free.f_bavail * free.f_frsize / 1e9
    return f"a flush of 12 KiB took {flush_milliseconds():.2f} ms, {free_gigabytes:.0f} GB free"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def _source() -> str:
    """The commit, and whether the tree differs from it."""
    told = _git("rev-parse", "--short", "HEAD")
    if not told:
        return "no commit"
    return f"commit {told}" + (", with changes" if _git("status", "--porcelain", "src") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (this checkout)"


def _peer(env: PeerEnv) -> str:
    return env.marker.read_text().strip() if env.ready() else f"{env.name} missing"
