"""What a conversation that begins on the command line knows of itself: where."""

from __future__ import annotations

import os
from pathlib import Path

from clew.config.values import Config
from clew.domain.conversations import NewConversation, Workspace

HEAD = "ref: refs/heads/"
LONGEST = 4096
"""Characters that are read of a file of git's."""


def new_conversation(config: Config, source: str) -> NewConversation:
    """A conversation of the folder we are in. The model that the configuration names is its own
    from now on; system prompt and tools the host pins with the first message."""
    return NewConversation(source=source, workspace=workspace(), model=config.model)


def workspace() -> Workspace:
    """The folder we are in, and the repository and branch it belongs to. Asks no git."""
    try:
        here = Path.cwd()
    except OSError:  # it was deleted under us
        return Workspace()
    root = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
    if root is None:
        return Workspace(cwd=str(here))
    return Workspace(cwd=str(here), git_root=str(root), git_branch=_branch(root / ".git"))


def _branch(git: Path) -> str | None:
    """The branch that is checked out. In a second work tree `.git` is a file that says where."""
    try:
        if git.is_file():
            named = _first_line(git).removeprefix("gitdir: ")
            git = Path(os.path.join(git.parent, named))
        head = _first_line(git / "HEAD")
    except (OSError, UnicodeDecodeError):
        return None
    return head.removeprefix(HEAD) if head.startswith(HEAD) else None


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline(LONGEST).strip()
