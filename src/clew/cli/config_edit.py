"""Making the configuration file, and opening it in the person's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from clew.config.template import TEMPLATE
from clew.errors import InputError

FALLBACKS = ("sensible-editor", "editor", "nano", "vi", "notepad")


def ensure(path: Path) -> bool:
    """Make the file, for nobody else to read, unless it is there; whether it was made."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(TEMPLATE)
    return True


def editor(environ: Mapping[str, str]) -> list[str]:
    """VISUAL, or EDITOR, or one that is there. InputError when there is none."""
    for name in ("VISUAL", "EDITOR"):
        if given := environ.get(name, "").strip():
            try:
                return shlex.split(given)
            except ValueError:
                raise InputError(f"{name} cannot be read: its quotes do not match") from None
    found = next(filter(None, map(shutil.which, FALLBACKS)), None)
    if found is None:
        raise InputError("there is no editor; name one in EDITOR: EDITOR=nano clew config edit")
    return [found]


def edit(command: list[str], path: Path) -> None:
    """Run the editor on the file, and wait. InputError when it cannot be run or fails."""
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise InputError(
            f"the editor {command[0]} cannot be run: {error.strerror}; name another in EDITOR"
        ) from None
    if code:
        raise InputError(f"the editor {command[0]} ended with {code}; {path} is as it left it")
