"""A process that appends to a closed store, so that all goes to the spool; it says what it was
promised. Killed by who started it.

    spool_writer.py STORE CONVERSATION NAME
"""

from __future__ import annotations

import itertools
import sys

import clew


def main(place: str, conversation: str, name: str) -> None:
    store = clew.open(place)
    conv = store.profile("p").open(conversation)
    store.close()
    for number in itertools.count():
        appended = conv.append([clew.user(f"{name}-{number} " + "x" * (number % 700))])
        assert appended.spooled
        print(f"{name}-{number}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
