"""One HTML page that needs nothing else: no script, no network, no font.

All that comes from a conversation goes through `html.escape`; links lead to the web, to mail
addresses, places of the page and pages beside it, the only images are pixels in data URLs, and the
page's policy lets a browser load nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import quote

from clew.context.entries import Entry
from clew.domain.chat import BlobReader
from clew.domain.compactions import Compaction
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Role
from clew.domain.parts import (
    File,
    Image,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    call_ids,
    plain_text,
)
from clew.exporters.dividers import placed, summary, told
from clew.exporters.ending import ended, nothing
from clew.exporters.html_style import CSS, POLICY
from clew.exporters.prose import anchor, code, plain, rendered
from clew.exporters.text import (
    ID_LENGTH,
    attachment,
    dumps,
    iso,
    minute,
    one_line,
    pretty,
    raster_url,
    unknown,
    web_url,
)
from clew.exporters.transcript import Transcript, call_of, kind_of, named, numbers

_OUTLINE = 90
"""Characters of a message in the outline."""


END = "<footer>Exported by clew.</footer>\n</body>\n</html>\n"
Pages = Mapping[str, str]
"""Names of the pages beside this one, by the ids of their conversations."""


def text(source: Transcript, pages: Pages | None = None) -> Iterator[str]:
    """The page, piece by piece."""
    pages = pages or {}
    yield begin(source.title)
    yield f"<header>\n{_heading(source.title)}{_facts(source, pages)}</header>\n"
    yield from _outline(source, pages)
    yield "<main>\n"
    if source.prompt is not None:
        yield f"{_folded('prompt', 'System prompt', plain(source.prompt))}\n"
    dividers = placed(source)
    for entry in named(source.entries()):
        place = entry.messages[0].replaces or entry.messages[0].seq
        while dividers and dividers[-1][0] < place:
            yield _divider(dividers.pop()[1])
        yield _entry(entry, source.blob)
    for _, record in reversed(dividers):
        yield _divider(record)
    if not source.info.head:
        yield "<p>It has no messages.</p>\n"
    yield f"</main>\n{END}"


# ---------------------------------------------------------------- around the messages


def begin(title: str) -> str:
    """All that stands before what is shown."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(one_line(title, 200))}</title>\n"
        f"<style>{CSS}</style>\n</head>\n<body>\n"
    )


def _heading(title: str) -> str:
    return f'<h1 dir="auto">{escape(one_line(title, 200))}</h1>\n'


def beside(name: str, label: str) -> str:
    """A link to a page in the same folder. `label` is HTML already."""
    return f'<a href="{quote(name)}">{label}</a>'


def _facts(source: Transcript, pages: Pages) -> str:
    info = source.info
    facts = [
        ("id", info.id), ("from", info.source), ("model", info.model),
        ("folder", info.git_root or info.cwd), ("git branch", info.git_branch),
        ("begun", minute(info.created_at)), ("last message", minute(info.active_at)),
        ("messages", f"{info.message_count:,}"), ("tokens", _tokens(source)),
    ]  # fmt: skip
    rows = [
        (name, f"<bdi>{escape(one_line(value, ID_LENGTH))}</bdi>") for name, value in facts if value
    ]
    if info.origin is not None:
        at = f" from #{info.base}" if info.base else ""
        label = f"<bdi>{escape(one_line(info.origin, ID_LENGTH))}</bdi>"
        page = pages.get(info.origin)
        rows.append((f"{kind_of(info)} of", (beside(page, label) if page else label) + at))
    listed = (f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in rows)
    return f"<dl>\n{''.join(listed)}</dl>\n"


def _tokens(source: Transcript) -> str:
    used = [call.usage for call in source.calls]
    if not any(usage.input or usage.output for usage in used):
        return ""
    return f"{sum(u.input for u in used):,} in, {sum(u.output for u in used):,} out"


def _outline(source: Transcript, pages: Pages) -> Iterator[str]:
    """What people said, compactions, branches and sub-agents, each a link to its place, or to its
    own page."""
    yield "<nav>\n<details open><summary>Outline</summary>\n<ol>\n"
    marks = [(place, _mark(place, escape(told(record)))) for place, record in placed(source)]
    called = {call: child for child in source.children if (call := call_of(child))}
    for child in source.children:
        if child not in called.values():
            place = child.base or source.info.head
            marks.append((place, _child(place, child, pages)))
    marks.sort(key=lambda mark: mark[0], reverse=True)
    for entry in source.entries():
        first = entry.messages[0]
        while marks and marks[-1][0] < (first.replaces or first.seq):
            yield marks.pop()[1]
        if entry.role is Role.USER and (said := one_line(plain_text(entry.parts), _OUTLINE)):
            link = f'<a href="#{first.seq}">#{first.seq} <bdi>{escape(said)}</bdi></a>'
            yield f"<li>{link}</li>\n"
        for call in call_ids(entry.parts) if called else ():
            if (child := called.pop(call, None)) is not None:
                yield _child(first.seq, child, pages)
    yield from (row for _, row in reversed(marks))
    yield from (_child(source.info.head, child, pages) for child in called.values())
    yield "</ol>\n</details>\n</nav>\n"


def _child(seq: int, info: ConversationInfo, pages: Pages) -> str:
    """A branch or sub-agent: its place, and its own page where there is one."""
    title = escape(one_line(info.title or info.preview or "(untitled)", _OUTLINE))
    at = f" from #{info.base}" if info.base else ""
    name = f"<bdi>{title} ({escape(one_line(info.id, ID_LENGTH))})</bdi>"
    page = pages.get(info.id)
    if page is None:
        return _mark(seq, f"{kind_of(info)}{at}: {name}")
    return f'<li class="note"><a href="#{seq}">{kind_of(info)}{at}</a>: {beside(page, name)}</li>\n'


def _mark(seq: int, label: str) -> str:
    """`label` is HTML already."""
    return f'<li class="note"><a href="#{seq}">{label}</a></li>\n'


def _divider(record: Compaction) -> str:
    said = summary(record)
    line = f'<div class="divider">{escape(told(record))}</div>\n'
    if not said:
        return line
    return f"{line}{_folded('', 'Its summary', rendered(said))}\n"


# ---------------------------------------------------------------- messages


def _entry(entry: Entry, blob: BlobReader) -> str:
    first, *others = entry.messages
    who = f'<span class="who">{entry.role}</span>'
    if entry.author:
        who += f" <bdi>{escape(one_line(entry.author, 200))}</bdi>"
    at = f'<time datetime="{iso(first.created_at)}">{minute(first.created_at)}</time>'
    anchors = "".join(f'<a id="{message.seq}"></a>' for message in others)
    head = f'<h2>{who} <a href="#{first.seq}">{numbers(entry.messages)}</a>{at}</h2>'
    body = "".join(_part(part, blob) for part in entry.parts) + _note(entry)
    return f'<article id="{first.seq}" class="{entry.role}">{anchors}{head}{body}</article>\n'


def _note(entry: Entry) -> str:
    """Why there is nothing to read, or how it ended."""
    said = ended(entry)
    words = f"Ended: {said}" if said else "Nothing to read" if nothing(entry) else ""
    return f'<p class="end" dir="auto">{escape(words)}</p>' if words else ""


def _part(part: Part, blob: BlobReader) -> str:
    match part:
        case Text(text=text):
            return rendered(text)
        case Reasoning(text=text):
            return _folded("thinking", "Thinking", rendered(text)) if text else ""
        case ToolCall():
            return _call(part)
        case ToolResult():
            return _result(part, blob)
        case Image():
            return _image(part, blob)
        case File():
            return f'<div class="text">{_linked(attachment(part), part.url)}</div>'
        case Unknown(value=value):
            return _folded("", escape(unknown(value)), code(dumps(value)))


def _folded(kind: str, summary: str, body: str) -> str:
    """`summary` is HTML already."""
    return f'<details class="{kind}"><summary>{summary}</summary>{body}</details>'


def _call(part: ToolCall) -> str:
    hint = escape(one_line(part.arguments, _OUTLINE))
    summary = f"<b>→ <bdi>{escape(one_line(part.name, 200))}</bdi></b> <bdi>{hint}</bdi>"
    return _folded("", summary, code(pretty(part.arguments)))


def _result(part: ToolResult, blob: BlobReader) -> str:
    sign, kind = ("✗", "error") if part.is_error else ("←", "")
    pieces = (Text(part.content),) if isinstance(part.content, str) else part.content
    said = plain_text(pieces)
    lines = said.count("\n") + (not said.endswith("\n"))
    size = f"{lines:,} lines" if lines > 1 else ""
    hint = escape(one_line(said, _OUTLINE))
    name = escape(one_line(part.name or part.call_id, 200))
    summary = f"<b>{sign} <bdi>{name}</bdi></b> <bdi>{hint}</bdi> {size}"
    body = "".join(
        code(piece.text) if isinstance(piece, Text) else _part(piece, blob) for piece in pieces
    )
    return _folded(kind, summary, body)


def _image(part: Image, blob: BlobReader) -> str:
    url = raster_url(part, blob)
    if url is None:
        return f'<div class="text">{_linked(attachment(part), part.url)}</div>'
    return f'<img loading="lazy" alt="{escape(attachment(part))}" src="{escape(url)}">'


def _linked(label: str, url: str | None) -> str:
    safe = web_url(url)
    label = f"[{escape(label)}]"
    if safe is None:
        return label if url is None else f"{label} <bdi>{escape(one_line(url, 200))}</bdi>"
    return anchor(safe, label)
