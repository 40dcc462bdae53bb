"""A process that imports a path, and prints the totals: for tests of two at once."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from imports import import_into
from servers import open_store


def main(store: str, path: str) -> None:
    """Wait for a line on standard input, so that all begin together."""
    with open_store(store) as opened:
        profile = opened.profile("p")
        print("ready", flush=True)
        sys.stdin.readline()
        done = import_into(profile, Path(path))
    print(msgspec.json.encode(done.totals).decode(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
