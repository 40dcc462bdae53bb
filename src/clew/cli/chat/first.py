"""The first start: nothing is stored yet, and no model may be connected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.cli import demo
from clew.cli.chat.api import Chat
from clew.cli.heading import title_of
from clew.cli.screen import Piece
from clew.cli.settings import Settings
from clew.cli.text import glance, short_id
from clew.importers.bring import import_paths
from clew.store.aio.conversation import AsyncConversation
from clew.store.profile import Profile

BUNDLED = Path(demo.__file__).parent / "data" / "transcripts" / "claude-code"
"""Its source and licence stand in NOTICE.md beside it."""
EXAMPLE = "What was done about accessibility?"


def bring(profile: Profile) -> str | None:
    """Import the bundled conversation; gives its id. Again gives the same one."""
    report = import_paths(profile, BUNDLED)
    found = (chat.conversation for source in report.sources for chat in source.chats)
    return next((str(id) for id in found if id is not None), None)


def lines(settings: Settings) -> Iterator[list[Piece | str]]:
    """What a person is told when no model is connected."""
    edit = settings.command("config edit")
    yield [
        ("No model is connected.", "yellow"),
        " The archivist answers: it quotes what is stored here, and thinks of nothing itself.",
    ]
    yield [
        "To connect one: set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama or its like, or ",
        (edit, "cyan"), ".",
    ]  # fmt: skip


async def tell(chat: Chat, conv: AsyncConversation) -> None:
    """That there is something to ask about."""
    title = title_of(await conv.info())
    chat.write(
        "To try it, a conversation that comes with clew was stored: ", (glance(title, 60), "bold")
    )
    remove = chat.settings.command(f"delete {short_id(conv.id)}")
    chat.write(("Ask about it, for instance: ", "dim"), EXAMPLE, ("; ", "dim"), (remove, "cyan"),
               (" removes it.", "dim"))  # fmt: skip
