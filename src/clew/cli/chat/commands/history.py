"""/undo, /redo, /retry, /edit: the end of a conversation taken out, put back, asked again.

All four are cuts or take one back: nothing is deleted. A cut ends the turn that is open and
withdraws what waits, whoever is at it; each of them says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.cli.chat.api import Chat
from clew.cli.chat.commands import models
from clew.cli.chat.commands.showing import alone, beginning, messages
from clew.cli.text import short_id
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import CutOutcome
from clew.domain.messages import Draft, Message, Role
from clew.domain.parts import Parts, Text, plain_text
from clew.errors import CutOvertaken, InputError, NotFound
from clew.store.aio.conversation import AsyncConversation

PAGE = 50
BY = "chat"


async def undo(chat: Chat, given: str) -> None:
    """Hides your last message and all that came of it, from you and from the model. Again goes
    further back; /redo puts back what was taken out last. What a tool did in the world outside
    stays done."""
    alone(given, "undo")
    info = await chat.conv.info()
    last = await _last(chat.conv)
    target = await _standing(chat.conv, last)
    outcome = await chat.conv.cut(target.uid, head=info.head, view=info.view, by=BY)
    many = messages(info.message_count - (await chat.conv.info()).message_count)
    chat.write(f"Took out {many}, from #{outcome.from_seq} on: ", (beginning(last.text), "bold"))
    _say_ended(chat, outcome.interrupted_turn, len(outcome.withdrawn))
    chat.write(("/redo puts it back; nothing is deleted", "dim"))


async def redo(chat: Chat, given: str) -> None:
    """Puts back what the newest /undo, /retry or /edit took out, as long as nothing has been said
    since."""
    alone(given, "redo")
    info = await chat.conv.info()
    try:
        outcome = await chat.conv.undo_cut(head=info.head, view=info.view)
    except CutOvertaken as error:
        elsewhere = chat.settings.command(
            f"branch {short_id(chat.conv.id)} --at-cut {error.number}"
        )
        raise InputError(
            f"something was said since, so it cannot be put back here; `{elsewhere}` opens it as a "
            "branch"
        ) from None
    except NotFound:
        raise InputError("nothing is taken out here; /undo takes the last exchange out") from None
    count = (await chat.conv.info()).message_count - info.message_count
    chat.write(f"Put back {messages(count)}: {_range(outcome)}")


def _range(outcome: CutOutcome) -> str:
    if outcome.from_seq == outcome.to_seq:
        return f"#{outcome.from_seq}"
    return f"#{outcome.from_seq} to #{outcome.to_seq}"


async def retry(chat: Chat, given: str) -> None:
    """Takes the answer to your last message out, and has it answered again: by MODEL, from then
    on, if you name one."""
    if given:
        await _last(chat.conv)  # else there is nothing to switch for
        await models.switch(chat, given)
    info = await chat.conv.info()  # before the message: who writes in between is not cut away
    last = await _last(chat.conv)
    await _again(chat, info, last, last.parts)


async def complete_retry(chat: Chat, typed: str) -> Sequence[str]:
    """Models."""
    return await models.complete_model(chat, typed)


async def edit(chat: Chat, given: str) -> None:
    """Puts your last message into the input line. What you make of it takes its place, the answer
    to it is taken out, and the new one is answered. With TEXT that becomes the message."""
    info = await chat.conv.info()
    last = await _last(chat.conv)
    text = given or await chat.edit(last.text)
    if text is None:
        chat.write(("Nothing was changed.", "dim"))
        return
    if not text.strip():
        raise InputError("a message without text cannot be sent; /undo takes the last one out")
    if text == last.text:
        chat.write(("Nothing was changed; /retry has it answered again.", "dim"))
        return
    await _again(chat, info, last, _with_text(last.parts, text))


def _with_text(parts: Parts, text: str) -> Parts:
    """A message that says something else; its images and files stay behind it."""
    return (Text(text), *(part for part in parts if not isinstance(part, Text)))


async def _again(chat: Chat, info: ConversationInfo, last: Message, parts: Parts) -> None:
    """Put a message in the place of the last one of the person, and have it answered. The head and
    view are those it was chosen at: Stale when anybody wrote since."""
    target = await _standing(chat.conv, last)
    draft = Draft(role=last.role, parts=parts, author=last.author, meta=last.meta)
    await chat.conv.edit(target.uid, draft, head=info.head, view=info.view, by=BY)
    said = beginning(plain_text(parts))
    chat.write((f"Again, in the place of #{target.seq}: ", "dim"), said)
    _say_ended(chat, info.turn, info.waiting)
    await chat.go_on()


async def _last(conv: AsyncConversation) -> Message:
    """The last message of a person that is shown."""
    cursor: str | None = None
    while True:
        page = await conv.log(limit=PAGE, order="newest", cursor=cursor)
        for message in page.items:
            if message.role is Role.USER and message.parts:
                return message
        cursor = page.next
        if cursor is None:
            raise InputError("nobody has said anything here yet; type a message first")


async def _standing(conv: AsyncConversation, message: Message) -> Message:
    """The message in whose place one stands: a cut has to begin there, or its old text would come
    back."""
    return message if message.replaces is None else await conv.message(message.place)


def _say_ended(chat: Chat, turn: int | None, withdrawn: int) -> None:
    """What a cut did besides."""
    if turn is not None:
        chat.write((f"Turn {turn} was open; it is ended.", "yellow"))
    if withdrawn:
        chat.write((f"{messages(withdrawn)} that waited: withdrawn.", "yellow"))
