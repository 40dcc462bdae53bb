"""Paints blocks of Markdown as lines for a terminal. Loaded when the first answer comes: Rich takes
a while.

What a model wrote is not trusted: everything that acts is made visible, after Rich has read the
Markdown too, because an entity (&#x202e;) becomes a character only there. Links are written out,
never as escape sequences.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.color import ColorSystem
from rich.console import Console
from rich.markdown import CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.theme import Theme

from clew.cli.chat.stream import Block
from clew.cli.screen import painted
from clew.cli.text import visible

NARROWEST, WIDEST = 10, 100
"""Columns; what is wider is hard to read."""
CODE = "ansi_dark"
_THEME = Theme({
    "markdown.code": "cyan", "markdown.code_block": "none", "markdown.h1": "bold underline",
    "markdown.h2": "bold underline", "markdown.h3": "bold", "markdown.h4": "bold italic",
    "markdown.h5": "italic", "markdown.h6": "italic dim", "markdown.block_quote": "italic",
    "markdown.link": "none", "markdown.link_url": "blue underline", "markdown.hr": "dim",
    "markdown.item.bullet": "yellow", "markdown.item.number": "yellow",
    "markdown.table.header": "bold", "markdown.table.border": "dim",
})  # fmt: skip


class _Left(Heading):
    """A heading at the left edge, as everything else."""

    LEVEL_ALIGN = {}  # noqa: RUF012


class _Code(CodeBlock):
    """Code inside another block."""

    def __rich_console__(self, console: Console, options: object) -> Iterator[Syntax]:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=CODE, background_color="default", word_wrap=True)


class _Read(Markdown):
    elements = Markdown.elements | {
        "heading_open": _Left, "fence": _Code, "code_block": _Code,
    }  # fmt: skip


class Painter:
    """Paints for one width."""

    def __init__(self, width: int, color: bool = True) -> None:
        self.width = max(NARROWEST, min(width, WIDEST))
        self.color = color
        self._console = Console(
            file=io.StringIO(), width=self.width, color_system="standard" if color else None,
            force_terminal=color, force_jupyter=False, legacy_windows=False, theme=_THEME,
            highlight=False, emoji=False, markup=False, _environ={},
        )  # fmt: skip

    def rows(self, block: Block, style: str = "") -> list[str]:
        """The lines of a block, without line ends; the blank line before it is one of them."""
        before = [""] if block.apart else []
        if style:
            return before + [painted(row, style, self.color) for row in self._plain(block)]
        if block.kind == "code":
            return [*before, *self._code(block)]
        text = visible(block.text)
        lines = self._console.render_lines(
            _Read(text, hyperlinks=False, code_theme=CODE), pad=False
        )
        return before + _trimmed([self._row(line) for line in lines])

    def _plain(self, block: Block) -> list[str]:
        lines = self._console.render_lines(visible(block.text), pad=False)
        return _trimmed(["".join(visible(s.text) for s in line).rstrip() for line in lines])

    def _code(self, block: Block) -> Iterator[str]:
        """Not wrapped: a terminal does that itself, and then copies a line as one."""
        if block.first:
            yield painted(f"```{visible(block.lang)}", "dim", self.color)
        if block.text or not block.last:
            yield from self._highlighted(visible(block.text), block.lang)
        if block.last:
            yield painted("```", "dim", self.color)

    def _highlighted(self, code: str, lang: str) -> Iterable[str]:
        if not self.color or not lang:
            return code.split("\n")
        read = Syntax(code, lang, theme=CODE, background_color="default").highlight(code)
        count = code.count("\n") + 1
        lines = [*read.split("\n", allow_blank=True)][:count]
        return [self._row(line.render(self._console)) for line in lines]

    def _row(self, line: Iterable[Segment]) -> str:
        pieces = [
            (visible(text.replace("\n", "")), style) for text, style, control in line if not control
        ]
        while pieces and not pieces[-1][0].strip() and not getattr(pieces[-1][1], "bgcolor", None):
            pieces.pop()
        if pieces and not getattr(pieces[-1][1], "bgcolor", None):
            pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
        if not self.color:
            return "".join(text for text, _ in pieces).rstrip()
        return "".join(
            text if style is None else style.render(text, color_system=ColorSystem.STANDARD)
            for text, style in pieces
        )


def _trimmed(rows: list[str]) -> list[str]:
    """Without blank lines at the ends: those between blocks are ours."""
    while rows and not rows[0].strip():
        rows.pop(0)
    while rows and not rows[-1].strip():
        rows.pop()
    return rows
