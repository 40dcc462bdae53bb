"""`clew migrate` on a file."""

from __future__ import annotations

import json
from pathlib import Path

import apsw

import clew

from .helpers import Run


def test_back_into_wal_mode(run: Run, tmp_path: Path) -> None:
    """Refused by every command that opens it, found by the doctor, mended on request."""
    path = tmp_path / "a.db"
    with clew.open(path) as store:
        store.profile("p").conversation("k").add({"role": "user", "content": "kept"})
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    assert "clew migrate --wal" in run("list", "--store", path, code=5).stderr
    assert "clew migrate --wal" in run("doctor", "--store", path, code=1).output
    assert "in WAL mode again" in run("migrate", "--wal", "--store", path).stdout
    said = json.loads(run("migrate", "--wal", "--store", path, "--json").stdout)
    assert said == {"store": str(path), "changed": False}
    with clew.open(path) as store:
        assert store.profile("p").conversation("k").context()[0]["content"] == "kept"


def test_a_server_has_no_wal_mode(run: Run) -> None:
    said = run("migrate", "--wal", "--store", "postgresql://host/db", code=2)
    assert "for a store in a file" in said.stderr
