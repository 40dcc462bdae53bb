"""What this computer knows that others should not see: the rules of a redacted export."""

from __future__ import annotations

import getpass
from pathlib import Path

from clew.cli.settings import Settings
from clew.config.loading import load
from clew.config.own import own_secrets
from clew.domain.redaction import Redaction, Rules


def redaction_of(settings: Settings, people: bool) -> Redaction:
    """Rules with the keys of this configuration, and this user's home and name."""
    secrets, unknown = own_secrets(load().config)
    if unknown:
        settings.notes.line((
            f"The keyring cannot be asked for the keys of {', '.join(unknown)}: they are found by "
            "their form only.", "yellow",
        ))  # fmt: skip
    home = str(Path.home())
    names = tuple({name for name in (_user(), Path(home).name) if name and name != "root"})
    return Redaction(Rules(secrets=secrets, homes=True, home=home, people=people, names=names))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without an entry
        return ""
