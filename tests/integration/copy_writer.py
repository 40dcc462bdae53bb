"""A process that appends until its store is moved, and prints a line for each acknowledgement.

python copy_writer.py STORE NAME
"""

from __future__ import annotations

import json
import sys

import clew
from clew.errors import StoreMoved

MOST = 20_000


def say(**line: str) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    where, name = sys.argv[1:]
    with clew.open(where) as store:
        conv = store.profile("live").conversation(name)
        for n in range(MOST):
            key = f"{name}-{n}"
            try:
                if n % 7 == 6:
                    conv.cut(list(conv.messages())[-1].uid)
                conv.append([clew.user(key, key=key)])
            except StoreMoved as moved:
                say(moved=moved.where)
                return
            say(key=key)


if __name__ == "__main__":
    main()
