"""The input line: keys, long pastes, completion."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.utils import suspend_to_background_supported

from clew.cli.registry import load
from clew.cli.text import acts, one_line

REGISTRY = "clew.cli.chat.commands.registry"
MANY_LINES, MANY_CHARACTERS = 20, 4000
"""A paste of more is shown as one word."""
MOST = 50
"""Paths that are offered."""
_PASTED = re.compile(r"\[pasted [\d,]+ (?:lines|characters)(?: \d+)?\]")


class Pastes:
    """Long texts that were pasted, shown as one word each until they are sent."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """What to put into the input for a paste."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MANY_LINES and len(text) <= MANY_CHARACTERS:
            return text
        many = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        word, again = f"[pasted {many}]", 2
        while self._texts.get(word, text) != text:
            word, again = f"[pasted {many} {again}]", again + 1
        self._texts[word] = text
        return word

    def unfold(self, text: str) -> str:
        """The input with each word as the text it stands for."""
        return _PASTED.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def clear(self) -> None:
        """Forget all: they were sent."""
        self._texts.clear()


class Typing(Protocol):
    """Who is told what was typed."""

    def entered(self, text: str) -> None:
        """Enter."""
        ...

    def stopped(self) -> None:
        """Ctrl-C."""
        ...

    def left(self) -> None:
        """Ctrl-D with nothing typed."""
        ...

    def expand(self) -> None:
        """Ctrl-O: show the last tool call whole."""
        ...

    def pressed(self, key: str) -> None:
        """A key that answers, while `asks`."""
        ...

    def asks(self) -> bool:
        """Whether keys are answers now."""
        ...


def keys(buffer: Buffer, typing: Typing, pastes: Pastes) -> KeyBindings:
    """What keys do beside what they do in every editor."""
    bound = KeyBindings()
    answering = Condition(lambda: typing.asks() and not buffer.text)

    def enter(_: KeyPressEvent) -> None:
        document = buffer.document
        if document.is_cursor_at_the_end and document.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            typing.entered(buffer.text)

    def paste(event: KeyPressEvent) -> None:
        buffer.insert_text(pastes.fold(event.data))

    def newline(_: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    def suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    def answer(event: KeyPressEvent) -> None:
        typing.pressed(event.data)

    bound.add("enter")(enter)
    for key in (("escape", "enter"), ("c-j",)):
        bound.add(*key)(newline)
    bound.add(Keys.BracketedPaste)(paste)
    for key in ("c-c", Keys.SIGINT):
        bound.add(key)(_does(typing.stopped))
    bound.add("c-d", filter=Condition(lambda: not buffer.text))(_does(typing.left))
    bound.add("c-o")(_does(typing.expand))
    bound.add("c-z", filter=Condition(suspend_to_background_supported))(suspend)
    # No mouse was asked for: what looks like one need not be a whole report.
    bound.add(Keys.Vt100MouseEvent, eager=True)(_does(lambda: None))
    for key in "yYaAnN":
        bound.add(key, filter=answering, eager=True)(answer)
    return bound


def _does(act: Callable[[], None]) -> Callable[[KeyPressEvent], None]:
    return lambda _: act()


class Completing(Completer):
    """Commands behind a slash, what stands behind them, and paths behind @."""

    def __init__(self, chat: Callable[[], Any]) -> None:
        self._chat = chat

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        typed = document.text_before_cursor
        if "\n" in typed:
            return
        if typed.startswith("/"):
            name, space, rest = typed[1:].partition(" ")
            found = [*_commands(name)] if not space else await self._behind(name, rest)
        else:
            found = [*_paths(document.get_word_before_cursor(WORD=True))]
        for each in found:
            yield each

    async def _behind(self, name: str, rest: str) -> list[Completion]:
        chat, registry = self._chat(), load(REGISTRY)
        command: Any = registry.find(name) if chat is not None else None
        if command is None or command.complete is None:
            return []
        offered: Sequence[str] = await command.complete(chat, rest)
        return [Completion(text, -len(rest), display=one_line(text)) for text in offered]


def _commands(name: str) -> Iterator[Completion]:
    registry: Any = load(REGISTRY)
    for known, usage, summary in registry.names():
        if known.startswith(name):
            yield Completion(
                known, -len(name), display=f"/{known} {usage}".rstrip(), display_meta=summary
            )


def _paths(word: str) -> Iterator[Completion]:
    """Names in the folder that is typed; none that would act in the input line."""
    if not word.startswith("@"):
        return
    folder, _, start = word[1:].rpartition("/")
    base = f"{folder}/" if "/" in word else ""
    try:
        with os.scandir(os.path.expanduser(base) or ".") as entries:
            found = sorted((e.name, e.is_dir()) for e in entries if e.name.startswith(start))
    except OSError:
        return
    for name, is_folder in found[:MOST]:
        if not any(acts(ord(c)) or c in "\n\t" for c in name) and (start or name[0] != "."):
            yield Completion(f"@{base}{name}{'/' if is_folder else ''}", -len(word))


def make_buffer(history: History, completer: Completer) -> Buffer:
    """The buffer that is typed into."""

    def offers() -> bool:
        text = buffer.text
        return text.startswith("/") and "\n" not in text

    buffer = Buffer(
        history=history, completer=completer, multiline=True, tempfile_suffix=".md",
        complete_while_typing=Condition(offers),
    )  # fmt: skip
    return buffer
