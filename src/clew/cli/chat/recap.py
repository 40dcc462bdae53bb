"""What a person wants to know of a conversation that is opened again, on a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from clew.cli.heading import title_of
from clew.cli.lines import Line, line
from clew.cli.screen import Piece
from clew.cli.text import fit, glance, short_id
from clew.cli.times import ago
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Message, Role
from clew.domain.notes import Goal, Todo
from clew.store.aio.conversation import AsyncConversation
from clew.store.findings import counted

LOOK = 40
"""Newest messages among which the last exchange is looked for."""
TODOS = 3
SAID = 200
"""Columns of what was said last."""


class Recap(Struct, frozen=True, kw_only=True):
    """The facts."""

    info: ConversationInfo
    said: Message | None
    """The last message of a person."""
    answer: Message | None
    """The last text of the model after it."""
    todos: tuple[Todo, ...] = ()
    goal: Goal | None = None
    turn: str | None = None
    """State of the open turn."""


async def look(conv: AsyncConversation) -> Recap:
    """Read them."""
    info = await conv.info()
    newest = (await conv.log(limit=LOOK, order="newest")).items
    said, answer = last_exchange(newest)
    state = None
    if info.turn is not None:
        state = next((t.state for t in await conv.turns(5) if t.number == info.turn), None)
    return Recap(
        info=info, said=said, answer=answer, todos=await conv.todos(), goal=await conv.goal(),
        turn=state,
    )  # fmt: skip


def last_exchange(newest: Sequence[Message]) -> tuple[Message | None, Message | None]:
    """What a person said last, and what was answered last; of messages from the newest on."""
    answer = None
    for message in newest:
        if message.role is Role.USER and message.text.strip():
            return message, answer
        if answer is None and message.role is Role.ASSISTANT and message.text.strip():
            answer = message
    return None, answer


def lines(recap: Recap, now: int, width: int) -> Iterator[Line]:
    """As lines for the screen; nothing in them acts."""
    info = recap.info
    yield line(0, (fit(title_of(info), width), "bold"))
    facts = f"{counted(info.message_count, 'message')}, active {ago(info.active_at, now)}"
    yield line(0, (short_id(info.id), "yellow"), (f"  {facts}", "dim"))
    for message, sign in ((recap.said, "> "), (recap.answer, "  ")):
        if message is not None:
            text = glance(message.text, min(SAID, max(20, 2 * width)))
            yield line(0, (sign + text, "dim"), hang=2)
    if recap.goal is not None:
        yield line(0, ("goal: ", "dim"), glance(recap.goal.text, SAID), hang=2)
    yield from _todo_lines(recap.todos)
    yield from (line(0, piece) for piece in _open(recap))


def _todo_lines(todos: Sequence[Todo]) -> Iterator[Line]:
    left = [todo for todo in todos if todo.state in ("active", "pending")]
    for todo in left[:TODOS]:
        sign = "now:  " if todo.state == "active" else "todo: "
        yield line(0, (sign, "dim"), glance(todo.text, SAID), hang=2)
    if len(left) > TODOS:
        yield line(0, (f"and {len(left) - TODOS:,} more todos", "dim"))


def _open(recap: Recap) -> Iterator[Piece]:
    info = recap.info
    left = recap.said is not None and recap.said.seq == info.head
    if left and info.turn is None and not info.read_only:
        yield "not answered: /retry has it answered", "dim"
    if recap.turn == "waiting":
        yield f"turn {info.turn} waits for your answer", "yellow"
    elif info.turn is not None:
        yield f"turn {info.turn} is open: it is running elsewhere, or was interrupted", "yellow"
    if info.waiting:
        yield f"{counted(info.waiting, 'message')} waiting to be answered", "yellow"
    if info.ended_at is not None:
        yield "it has ended; a message opens it again", "yellow"
    if info.read_only:
        yield "it is read-only: /branch goes on in a copy", "yellow"
