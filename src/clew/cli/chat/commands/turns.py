"""/queue, /stop, /status, /quit: the turn that runs, and the chat itself."""

from __future__ import annotations

from collections.abc import Iterator

from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import alone, beginning, messages
from clew.cli.heading import states, title_of
from clew.cli.screen import Piece
from clew.cli.text import one_line
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import user
from clew.domain.notes import Goal, Todo
from clew.errors import InputError
from clew.providers.api import Model

NAME = 9


async def queue(chat: Chat, given: str) -> None:
    """Sends a message that the next turn answers. What you type while a turn runs enters that one
    at its next step; this waits for its end. It is kept at once: it will be answered, also if the
    chat is closed."""
    if not given:
        raise InputError("name the message: /queue TEXT")
    if (await chat.conv.info()).turn is None:
        await chat.say([user(given)])
        return
    report = await chat.host.say(chat.conv, [user(given)], queue=True)
    if report.state == "queued":
        chat.write(("For the next turn: ", "dim"), beginning(given))
    elif report.text:  # the turn had ended meanwhile
        chat.markdown(report.text)


async def stop(chat: Chat, given: str) -> None:
    """Ends the running turn at once, here or in another process. What the model has said is kept,
    marked as cut short; messages that wait are answered next."""
    alone(given, "stop")
    stopped = await chat.host.stop(chat.conv)
    chat.write("Stopped." if stopped else ("No turn is running.", "dim"))


async def status(chat: Chat, given: str) -> None:
    """Shows which conversation this is, who answers, what is open and what waits."""
    alone(given, "status")
    conv, info = chat.conv, await chat.conv.info()
    model = await chat.host.model_of(conv)
    chat.write((title_of(info), "bold"))
    for name, value in _facts(info, model, conv.clock.now()):
        chat.write((f"{name:{NAME}}", "dim"), value)
    for name, value in _beside(await conv.goal(), await conv.todos()):
        chat.write((f"{name:{NAME}}", "dim"), value)
    for waiting in await conv.inbox():
        said = " ".join(getattr(part, "text", "") for part in waiting.parts)
        chat.write((f"{'waits':{NAME}}", "dim"), beginning(said))


def _facts(info: ConversationInfo, model: Model, now: int) -> Iterator[tuple[str, Piece | str]]:
    yield "id", (one_line(info.id), "yellow")
    yield "where", f"{one_line(info.profile)}/{one_line(info.source)}"
    if info.cwd:
        yield "folder", one_line(info.cwd)
    yield "model", f"{one_line(model.shown)}, {model.window:,} tokens"
    yield "messages", messages(info.message_count)
    if state := "; ".join(states(info, now)):
        yield "state", (state, "yellow")


def _beside(goal: Goal | None, todos: tuple[Todo, ...]) -> Iterator[tuple[str, str]]:
    if goal is not None:
        yield "goal", one_line(goal.text)
    if left := [todo for todo in todos if todo.state in ("pending", "active")]:
        yield "todo", f"{len(left):,} of {len(todos):,} open; /todo shows them"


async def quit(chat: Chat, given: str) -> None:
    """Leaves. Everything is kept: `clew chat --continue` goes on here."""
    alone(given, "quit")
    chat.quit()
