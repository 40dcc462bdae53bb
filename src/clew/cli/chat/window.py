"""The part of the terminal that is drawn again: an answer's unfinished end, the input, the status.

Everything above it is written once, scrolls away with the terminal's own memory and is never
touched again. What is new above and the part below are written to the terminal in one piece, so
that nothing flickers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.key_binding.bindings.open_in_editor import load_open_in_editor_bindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from clew.cli.text import cells

PROMPT, FURTHER = "> ", "  "
MENU = 8
"""Rows of the completions."""
PERIOD = 0.04
"""Seconds between two drawings, at least."""
_REFLOWS = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "ALACRITTY_WINDOW_ID", "WEZTERM_PANE",
    "ITERM_SESSION_ID", "KONSOLE_VERSION", "GHOSTTY_RESOURCES_DIR",
)  # fmt: skip
_STYLE = Style.from_dict({
    "prompt": "bold ansicyan", "search-toolbar": "ansibrightblack",
    "completion-menu.completion": "noreverse", "completion-menu.completion.current": "reverse",
})  # fmt: skip
_PLAIN = Style.from_dict({"completion-menu.completion.current": "reverse"})


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal breaks lines again when it becomes narrower."""
    return any(environ.get(name) for name in _REFLOWS)


def broken(lengths: list[int], width: int) -> int:
    """How many rows more lines take in a narrower terminal that breaks them."""
    return sum(max(0, -(-length // width) - 1) for length in lengths)


class _Held(Vt100_Output):
    """Writes nothing while it is held, and then everything at once."""

    held = False

    def flush(self) -> None:
        if not self.held:
            super().flush()

    def erase_down(self) -> None:
        """This row and all below. Not from the very first cell of the screen: tmux takes that for
        a clear screen, and keeps what was erased in the scrollback."""
        self.write_raw("\x1b7\x1b[2K\x1b[B\x1b[J\x1b8")


class _Screenful(Application[None]):
    """Writes rows above itself. See the module."""

    def __init__(self, area: Area, output: Output, **given: Any) -> None:
        self._area = area
        super().__init__(output=output, **given)

    def _redraw(self, render_as_done: bool = False) -> None:
        held = self.output if isinstance(self.output, _Held) else None
        if held is not None:
            held.held = True
        try:
            if self._is_running and not self._running_in_terminal:
                self._write_above()
            super()._redraw(render_as_done)
        finally:
            if held is not None:
                held.held = False
            self.output.flush()
        self._area.drawn_width = self.output.get_size().columns

    def _write_above(self) -> None:
        rows = self._area.take_rows()
        if rows:
            self.renderer.erase()
            self.output.write_raw("".join(f"{row}\r\n" for row in rows))

    def _on_resize(self) -> None:
        """The terminal has broken our rows into more than we drew: go up by those too."""
        width = self.output.get_size().columns
        more = self._area.broken_above(width)
        if more:
            self.output.cursor_up(more)
        super()._on_resize()


class Area:
    """The input and what stands around it. `tail` and `status` give rows of escape sequences that
    are no wider than the terminal."""

    def __init__(
        self, buffer: Buffer, keys: KeyBindings, tail: Callable[[], list[str]],
        status: Callable[[], str], *, color: bool, vi: bool,
    ) -> None:  # fmt: skip
        self._buffer, self._tail, self._status = buffer, tail, status
        self._rows: list[str] = []
        self._shown: list[str] = []
        self._reflows = reflows(os.environ)
        self.drawn_width = 0
        """Columns when it was drawn last."""
        self.app: Application[None] = _Screenful(
            self, _output(),
            layout=self._layout(),
            key_bindings=merge_key_bindings([load_open_in_editor_bindings(), keys]),
            style=_STYLE if color else _PLAIN,
            color_depth=ColorDepth.DEPTH_4_BIT if color else ColorDepth.DEPTH_1_BIT,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            erase_when_done=True, min_redraw_interval=PERIOD,
        )  # fmt: skip

    @property
    def columns(self) -> int:
        """Of the terminal, now."""
        return self.app.output.get_size().columns

    @property
    def height(self) -> int:
        return self.app.output.get_size().rows

    def above(self, rows: list[str]) -> None:
        """Write rows above, once and for ever."""
        self._rows += rows
        self.app.invalidate()

    def take_rows(self) -> list[str]:
        """Those that are not written yet."""
        rows, self._rows = self._rows, []
        return rows

    def changed(self) -> None:
        """Draw again, soon."""
        self.app.invalidate()

    def broken_above(self, width: int) -> int:
        """Rows by which the terminal moved the cursor down when it broke what stands above it."""
        if not self._reflows or not 0 < width < self.drawn_width:
            return 0
        lengths = [cells(_bare(row)) for row in self._shown]
        *above, last = self._buffer.document.text_before_cursor.split("\n")
        for line in (*above, last):
            rest = cells(line) + len(PROMPT)
            while rest > self.drawn_width:
                lengths.append(self.drawn_width)
                rest -= self.drawn_width - len(FURTHER)
            lengths.append(rest)
        return broken(lengths, width)

    def _layout(self) -> Layout:
        search = SearchToolbar()
        control = BufferControl(
            self._buffer, search_buffer_control=search.control, preview_search=True
        )
        entry = Window(
            control, wrap_lines=True, dont_extend_height=True, height=self._entry_height,
            get_line_prefix=self._prefix,
        )  # fmt: skip
        tail = Window(FormattedTextControl(self._tail_text), dont_extend_height=True)
        status = Window(FormattedTextControl(lambda: ANSI(self._status())), height=1)
        rows = HSplit([
            ConditionalContainer(tail, Condition(self._has_tail)), entry, search, status, Window()
        ])  # fmt: skip
        menu = CompletionsMenu(max_height=MENU, scroll_offset=1)
        return Layout(FloatContainer(rows, [Float(menu, xcursor=True, ycursor=True)]), entry)

    def _has_tail(self) -> bool:
        self._shown = self._tail()
        return bool(self._shown)

    def _tail_text(self) -> AnyFormattedText:
        return ANSI("\n".join(self._shown))

    def _entry_height(self) -> Dimension:
        most = max(1, self.height // 2)
        least = min(most, MENU) if self._buffer.complete_state else 1
        return Dimension(min=least, max=max(most, least))

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("class:prompt", PROMPT if not line and not wrapped else FURTHER)]


def _output() -> Output:
    if sys.platform == "win32":
        return create_output()
    made = create_output()
    if not isinstance(made, Vt100_Output):
        return made
    # Asking the terminal where the cursor is would put its answer among what is typed.
    return _Held(sys.stdout, made.get_size, os.environ.get("TERM"), enable_cpr=False)


def _bare(row: str) -> str:
    """A row without its colours."""
    first, *others = row.split("\x1b[")
    return first + "".join(piece.partition("m")[2] for piece in others)
