"""Hermes' `state.db`: sessions and their messages, of any version of its schema.

Sessions that are one conversation are told in `hermes_lineage`, what compactions and rewinds did
to its rows in `hermes_compaction`. The whole file is one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.importers.fields import meta, moment, text
from clew.importers.foreign import Foreign, loose
from clew.importers.format import Format
from clew.importers.formats.hermes_compaction import (
    SHARED,
    Entry,
    Fate,
    Layout,
    Mark,
    Reconstruction,
)
from clew.importers.formats.hermes_lineage import Lineage, Row, lineages
from clew.importers.formats.hermes_rows import (
    COUNTS,
    MessageRow,
    mark_of,
    parts_of,
    record_of,
    rows_of,
    spent_of,
)
from clew.importers.probe import Probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Event,
    Fork,
    Kept,
    Named,
    Rewound,
    Skipped,
    Titled,
    Used,
    Warned,
)
from clew.importers.source import Source

_TEXTS = (
    "source", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "model",
    "model_config", "system_prompt", "end_reason", "cwd", "git_branch", "git_repo_root", "title",
    "profile_name",
)  # fmt: skip
_NUMBERS = ("started_at", "ended_at", "archived", "rewind_count", *COUNTS)
_OTHER = ("api_content", "codex_message_items")
"""Columns of `messages` that say again what `content` says."""
_TABLES = ("compression_locks", "gateway_routing", "state_meta", "async_delegations")
_AUTOMATIC = ("cron",)
_MARKS = frozenset(("schema_version", "session_model_usage", "compression_locks", "state_meta"))
_NONE = frozenset[str]()


def matches(probe: Probe) -> bool:
    """Sessions and messages with what all versions have, and a table that others do not have."""
    sessions, messages = probe.tables.get("sessions", _NONE), probe.tables.get("messages", _NONE)
    if not ({"id", "source"} <= sessions and {"id", "session_id", "role", "content"} <= messages):
        return False
    return not _MARKS.isdisjoint(probe.tables)


def read(source: Source) -> Iterator[Event]:
    """Every conversation, those that others come from first, then what was left."""
    with source.database() as database:
        reader = _Reader(database, database.columns("sessions"), database.columns("messages"))
        found, warnings = lineages(reader.lineage_rows())
        yield from map(Warned, warnings)
        origins = {each.parent for each in found if each.kind == "branch"}
        for lineage in found:
            yield from reader.conversation(lineage, bool(origins.intersection(lineage.ids)))
        yield from reader.left()


class _Reader:
    """What is remembered from conversation to conversation."""

    def __init__(
        self, database: Foreign, sessions: frozenset[str], messages: frozenset[str]
    ) -> None:
        self.database = database
        self.session_columns, self.message_columns = sessions, messages
        self.has_model_usage = "model" in database.columns("session_model_usage")
        self.home: dict[str, str] = {}
        """The conversation that a session belongs to."""
        self.newest: str | None = ROOT
        """The newest message of the conversation that was not taken back."""
        self.parent: str | None = None
        """What the next message follows, if not the one before it."""
        self.contexts: dict[str, list[list[Entry]]] = {}
        """Of a session that others branch from: the contexts it had."""

    # ------------------------------------------------------------------ sessions

    def lineage_rows(self) -> Iterator[Row]:
        """Every session, as SQLite holds it."""
        names = ["id", "source", "parent_session_id", "model_config", "ended_at", "end_reason"]
        picked = ", ".join(name if name in self.session_columns else "NULL" for name in names)
        order = "started_at, id" if "started_at" in self.session_columns else "id"
        for row in self.database.rows(f"SELECT {picked} FROM sessions ORDER BY {order}"):  # noqa: S608
            yield Row(**dict(zip(Row.__struct_fields__, row, strict=True)))

    def session(self, id: str) -> dict[str, Any]:
        """A session's columns, those that are missing left out."""
        texts = [name for name in _TEXTS if name in self.session_columns]
        numbers = [name for name in _NUMBERS if name in self.session_columns]
        picked = ", ".join(["id", *texts, *numbers])
        for row in self.database.rows(f"SELECT {picked} FROM sessions WHERE id = ?", id):  # noqa: S608
            values = dict(zip(["id", *texts, *numbers], row, strict=True))
            return values | {name: loose(values[name]) for name in texts}
        return {}

    # ------------------------------------------------------------------ conversations

    def conversation(self, lineage: Lineage, has_branches: bool) -> Iterator[Event]:
        chat, past = lineage.ids[0], Reconstruction()
        marks = self.marks(chat)
        shared: str | None = None
        if lineage.kind == "branch" and lineage.parent is not None:
            shared = past.shared(marks, self.contexts.get(lineage.parent, []))
        self.newest, self.parent = ROOT if shared is None else None, None
        yield self.chat(lineage, self.session(chat), shared)
        if lineage.kind == "branch" and shared is None and marks:
            yield Warned(
                f"session {chat!r} is kept apart: it shares no message with {lineage.parent!r}, "
                "which it says it branched from"
            )
        prompt: str | None = None
        for at, id in enumerate(lineage.ids):
            self.home[id] = chat
            about = self.session(id)
            if at:
                marks = self.marks(id)
                yield from self.next_session(chat, id, about, prompt)
            prompt = text(about.get("system_prompt")) or prompt
            first = len(past.context) if shared is not None and not at else 0
            layout = past.session(marks, is_rotated=at > 0, first=first)
            layout.fates[:0] = [SHARED] * first
            yield from self.messages(chat, id, text(about.get("model")), marks, layout)
            yield from self.usage(chat, id, about)
            if has_branches:
                self.contexts[id] = [*past.earlier, list(past.context)]

    def chat(self, lineage: Lineage, about: dict[str, Any], shared: str | None) -> Chat:
        parent = None if lineage.parent is None else self.home[lineage.parent]
        is_fork = lineage.kind == "branch" and shared is not None and parent is not None
        is_delegate = lineage.kind == "delegate"
        count = len(lineage.ids)
        facts = {name: about.get(name) for name in _TEXTS if name not in _ELSEWHERE}
        return Chat(
            id=lineage.ids[0],
            title=text(about.get("title")) or None,
            created_at=moment(about.get("started_at")),
            workspace=_workspace(about),
            model=text(about.get("model")) or None,
            prompt=text(about.get("system_prompt")) or None,
            origin=parent if is_delegate else None,
            fork=Fork(parent, shared) if is_fork and parent is not None else None,
            automation=text(about.get("source")) in _AUTOMATIC,
            meta=meta(
                **facts,
                archived=about.get("archived") == 1,
                sessions=count if count > 1 else None,
                tip=lineage.ids[-1] if count > 1 and lineage.is_live else None,
                parent=lineage.claimed if is_fork or is_delegate else lineage.claimed or parent,
            ),
        )

    def next_session(
        self, chat: str, id: str, about: dict[str, Any], prompt: str | None
    ) -> Iterator[Event]:
        """The next segment of a chain: what it has of its own."""
        yield Named(chat=chat, id=id)
        own = text(about.get("system_prompt")) or None
        workspace, model = _workspace(about), text(about.get("model")) or None
        yield Chat(
            id=chat,
            prompt=own if own != prompt else None,
            workspace=workspace,
            model=model,
        )
        if title := text(about.get("title")):
            yield Titled(chat=chat, title=title)

    # ------------------------------------------------------------------ messages

    def marks(self, session: str) -> list[Mark]:
        return [mark_of(row) for row in rows_of(self.database, session, self.message_columns)]

    def messages(
        self, chat: str, session: str, model: str | None, marks: Sequence[Mark], layout: Layout
    ) -> Iterator[Event]:
        block = _Block(chat)
        rewound: str | None = None
        rows = rows_of(self.database, session, self.message_columns)
        for at, (row, mark, fate) in enumerate(zip(rows, marks, layout.fates, strict=True)):
            if rewound is not None and mark.state != "rewound":
                yield Rewound(chat=chat, first=rewound)
                rewound, self.parent = None, self.newest
            if fate.block != block.id:
                yield from block.end()
                block = _Block(chat, fate.block, row.at)
            if at in layout.opens:
                yield Compacted(chat=chat, id=f"compaction:{row.id}", at=row.at)
            if fate.block is not None:
                block.add(row, fate, model)
            elif fate is not SHARED:
                role = row.role
                if role is None:
                    yield Skipped(f"message/{row.text('role') or 'without a role'}")
                    continue
                yield record_of(row, chat, role, model, self.parent)
                self.parent = None
                if mark.state == "rewound":
                    rewound = rewound or str(row.id)
                else:
                    self.newest = str(row.id)
        yield from block.end()
        if rewound is not None:
            yield Rewound(chat=chat, first=rewound)
            self.parent = self.newest

    # ------------------------------------------------------------------ usage

    def usage(self, chat: str, session: str, about: dict[str, Any]) -> Iterator[Event]:
        """What a session cost, by model and task; of older versions, in all."""
        found = False
        for model, task, spent in self.by_model(session) if self.has_model_usage else ():
            if spent is not None:
                found = True
                yield Used(chat=chat, group=f"{session}:{model}:{task}", spent=spent)
        if not found and (spent := spent_of(about, text(about.get("model")))) is not None:
            yield Used(chat=chat, group=session, spent=spent, at=moment(about.get("ended_at")))

    def by_model(self, session: str) -> Iterator[tuple[str, str, Any]]:
        columns = self.database.columns("session_model_usage")
        counts = [name for name in COUNTS if name in columns]
        task = "task" if "task" in columns else "''"
        # Not SUM, which fails where whole numbers add up to more than SQLite holds.
        sums = "".join(f", TOTAL({name})" for name in counts)
        statement = (
            f"SELECT model, {task}{sums} FROM session_model_usage "  # noqa: S608
            "WHERE session_id = ? GROUP BY 1, 2 ORDER BY 1, 2"
        )
        for row in self.database.rows(statement, session):
            model = loose(row[0]) or "unknown"
            values = dict(zip(counts, row[2:], strict=True))
            yield model, loose(row[1]) or "", spent_of(values, model)

    # ------------------------------------------------------------------ the rest

    def left(self) -> Iterator[Event]:
        """What is not imported, counted."""
        for name in _OTHER:
            if name in self.message_columns:
                yield from self.counted(
                    f"messages.{name}",
                    f"SELECT count({name}) FROM messages",  # noqa: S608
                )
        for name in _TABLES:
            if self.database.columns(name):
                yield from self.counted(name, f"SELECT count(*) FROM {name}")  # noqa: S608
        strangers = (
            "SELECT count(*) FROM messages WHERE session_id NOT IN (SELECT id FROM sessions WHERE "
            "id IS NOT NULL)"
        )
        yield from self.counted("messages of no session", strangers)

    def counted(self, kind: str, statement: str) -> Iterator[Event]:
        for row in self.database.rows(statement):
            if row[0]:
                yield Skipped(kind, int(row[0]))


_ELSEWHERE = ("model", "system_prompt", "cwd", "git_branch", "git_repo_root", "title")
"""Columns of a session that have a place of their own."""


def _workspace(about: dict[str, Any]) -> Workspace:
    return Workspace(
        cwd=text(about.get("cwd")) or None,
        git_root=text(about.get("git_repo_root")) or None,
        git_branch=text(about.get("git_branch")) or None,
    )


class _Block:
    """The rows that a compaction put there, as they come."""

    def __init__(self, chat: str, id: str | None = None, at: int | None = None) -> None:
        self.chat, self.id, self.at = chat, id, at
        self.body: list[Kept | Inline] = []

    def add(self, row: MessageRow, fate: Fate, model: str | None) -> None:
        role = row.role
        if fate.is_gone or role is None:
            return
        if fate.of is not None:
            self.body.append(Kept(fate.of, fate.of))
        else:
            self.body.append(Inline(role=role, parts=parts_of(row, role, model)))

    def end(self) -> Iterator[Event]:
        if self.id is not None:
            yield Compacted(
                chat=self.chat, id=f"compaction:{self.id}", body=tuple(self.body), at=self.at
            )


FORMAT = Format(
    name="hermes",
    label="Hermes",
    matches=matches,
    read=read,
    places=(".hermes/state.db", ".hermes/profiles/*/state.db"),
)
