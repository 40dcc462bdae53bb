"""What the commands of a chat see of it. The screen (terminal or pipe) implements it; the commands
are written and tested against this alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from clew.cli.settings import Settings
from clew.config.values import Config
from clew.domain.messages import Draft
from clew.host.api import Hosting
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile

Piece = tuple[str, str]
"""Text and its style, words of cli.screen: ("deleted", "red bold"); "" is plain."""


class Chat(Protocol):
    """A running chat."""

    host: Hosting
    profile: AsyncProfile
    settings: Settings
    config: Config
    conv: AsyncConversation
    """The one that is open. A command changes it with `open`."""
    place: str
    """Key of this terminal and folder, of `--continue`."""

    async def open(self, conv: AsyncConversation, *, recap: bool = True) -> None:
        """Go on in this conversation: remembered for `--continue`, its recap shown."""
        ...

    async def say(self, drafts: Sequence[Draft]) -> None:
        """Send messages as if they were typed, and show the turn to its end."""
        ...

    async def go_on(self) -> None:
        """Continue what is open (host.go_on), and show it to its end."""
        ...

    def write(self, *pieces: Piece | str) -> None:
        """A line for the person; not part of the conversation."""
        ...

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Rows under titles, within the width."""
        ...

    def markdown(self, text: str) -> None:
        """Text as the model's answers are shown."""
        ...

    async def page(self, text: str) -> None:
        """A long text: in the pager on a terminal, as it is in a pipe."""
        ...

    async def confirm(self, question: str) -> bool:
        """Ask; false in a pipe."""
        ...

    async def edit(self, text: str) -> str | None:
        """Let the person change a text in the input line (or $EDITOR); None: given up."""
        ...

    def quit(self) -> None:
        """Leave after this command."""
        ...


class Command(NamedTuple):
    """A command of a chat. `run` gets what stands behind its name, stripped."""

    name: str
    """Without the slash."""
    usage: str
    """Arguments, as `[TEXT]`; "" when there are none."""
    summary: str
    """One line, for /help and completion."""
    run: Callable[[Chat, str], Awaitable[None]]
    complete: Callable[[Chat, str], Awaitable[Sequence[str]]] | None = None
    """Candidates for what stands behind the name."""
    during: bool = False
    """May run while a turn does."""
