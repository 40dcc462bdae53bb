"""The process that `clew demo` kills: appends messages to a conversation without an end.

    python -m clew.cli.demo.writer STORE PROFILE CONVERSATION

Prints a line `SEQ UID` for each message once it is acknowledged, and not before.
"""

from __future__ import annotations

import sys
from itertools import count

from clew.domain.messages import Draft, Role
from clew.domain.parts import Text
from clew.store.opening import open_parts
from clew.store.store import Store

_FILLER = "what a writer says again and again until it is killed; "


def text_of(number: int) -> str:
    """What message `number` says: of many lengths, so that the kill meets many states."""
    return f"message {number}: " + _FILLER * (number % 37)


def write(store: str, profile: str, conversation: str) -> None:
    """Append until somebody ends this process, or nobody listens any more."""
    with Store(open_parts(store, None, None, None, create=False)) as opened:
        target = opened.profile(profile).open(conversation)
        for number in count(1):
            draft = Draft(role=Role.USER, parts=(Text(text_of(number)),))
            stored = target.append([draft])
            print(stored.seqs[0], stored.uids[0], flush=True)


if __name__ == "__main__":
    try:
        write(*sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
