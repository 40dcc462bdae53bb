"""Whose thread a Codex rollout is: its head, and the thread it was forked from."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import takewhile
from typing import Any

from clew.domain.conversations import Workspace
from clew.importers.fields import ident, mapping, meta, moment, text, whole
from clew.importers.formats.codex_rows import Row, placed, rollout_of, rows, thread_of
from clew.importers.formats.responses_items import said
from clew.importers.records import Chat, Event, Fork, Skipped, Warned
from clew.importers.source import Source


class Session:
    """The conversation that a rollout is. It is told (`opened`) before the first record, when all
    that stands before it was seen."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._head: dict[str, Any] = {}
        self._stamp: object = None
        self._model: str | None = None
        self._cwd: str | None = None
        self._copied: str | None = None
        self._is_open = False
        self._parent: str | None = None
        self.id = thread_of(source) or source.id

    @property
    def workspace(self) -> Workspace:
        """Where the newest turn runs."""
        git = mapping(self._head.get("git"))
        return Workspace(self._cwd, git_branch=text(git.get("branch")))

    def at(self, cwd: str | None) -> Workspace:
        """A turn begins there."""
        self._cwd = cwd or self._cwd
        return self.workspace

    def head(self, payload: dict[str, Any], stamp: object) -> Iterator[Event]:
        """A `session_meta`. The first is this thread's; one that follows at once, of another
        thread, was copied with the history that this thread was forked from."""
        id = ident(payload.get("id")) or ident(payload.get("session_id"))
        if self._head or self._is_open:
            if not self._is_open and id != self.id and not self._parent:
                self._parent = id
            yield Skipped("session_meta")
            return
        self._head, self._stamp = payload, stamp
        self._cwd = text(payload.get("cwd"))
        self._parent = ident(payload.get("forked_from_id"))
        named = thread_of(self._source)
        if id is not None and named is not None and id != named:
            yield Warned(f"{self._source.id} says that its thread is {id}, its name says {named}")
        self.id = id or self.id

    def model_is(self, model: str | None) -> Iterator[Event]:
        """The model of a turn; that of the first is the thread's."""
        if model is None or self._model is not None:
            return
        self._model = model
        if self._is_open:
            yield Chat(id=self.id, model=model)

    def opened(self) -> Iterator[Event]:
        """The conversation, once."""
        if self._is_open:
            return
        self._is_open = True
        origin = self._origin()
        fork = yield from self._fork(origin)
        yield Chat(
            id=self.id,
            created_at=moment(self._head.get("timestamp")) or moment(self._stamp),
            workspace=self.workspace,
            model=self._model,
            prompt=_prompt(self._head),
            origin=origin,
            fork=fork,
            automation=self._head.get("source") == "exec",
            meta=self._about(),
        )

    @property
    def is_copied(self) -> bool:
        """Whether this place is in the history that was copied: what was spent there, the other
        thread spent."""
        return self._copied is not None

    def after(self, record: str | None) -> str | None:
        """What a record names as the one before it. The first behind a copied history names none:
        where the other thread is here, what was copied is not in this one."""
        if self._copied is None or record != self._copied:
            return record
        self._copied = None
        return None

    def _origin(self) -> str | None:
        """The thread whose sub-agent this one is."""
        agent = mapping(self._head.get("source")).get("subagent")
        if agent is None:
            return None
        spawn = mapping(mapping(agent).get("thread_spawn"))
        named = ident(spawn.get("parent_thread_id")) or ident(self._head.get("parent_thread_id"))
        return named or self._parent

    def _fork(self, origin: str | None) -> Generator[Event, None, Fork | None]:
        base = mapping(self._head.get("history_base"))
        if base and (thread := ident(base.get("thread_id"))):
            end = whole(base.get("end_ordinal_exclusive")) or 0
            return Fork(thread, (yield from self._record_before(thread, end)))
        if self._parent is None or self._parent == self.id:
            return None
        other = rollout_of(self._parent, self._source)
        if other is None:
            if origin is None:
                yield Warned(
                    f"{self.id} was forked from {self._parent}, whose rollout is not beside it: "
                    "what they share is kept in both"
                )
            return None
        # A source of its own: a followed one is read once, and waits at its end.
        self._copied = _shared(other, Source(self._source.path, self._source.member))
        if origin or self._copied is None:
            return None
        return Fork(self._parent, self._copied, copied=True)

    def _record_before(self, thread: str, end: int) -> Generator[Event, None, str | None]:
        """The newest record of a thread before a place that is told by its ordinal."""
        other = rollout_of(thread, self._source)
        if other is None:
            yield Warned(
                f"{self.id} goes on from the middle of {thread}, whose rollout is not beside it: "
                "taken to go on from its end"
            )
            return None
        before = takewhile(lambda each: each[0] < end, _records(other))
        return max(before, default=(0, None))[1]

    def _about(self) -> dict[str, Any] | None:
        head, git = self._head, mapping(self._head.get("git"))
        names = ("originator", "cli_version", "model_provider", "agent_nickname", "agent_role")
        return meta(
            **{name: text(head.get(name)) for name in names},
            source=text(head.get("source")),
            commit=text(git.get("commit_hash")),
            repository=text(git.get("repository_url")),
            forked_from=self._parent,
        )


def _prompt(head: dict[str, Any]) -> str | None:
    base = head.get("base_instructions")
    return text(mapping(base).get("text")) or text(base) or text(head.get("instructions")) or None


def _records(source: Source) -> Iterator[tuple[int, str]]:
    """Ordinals and ids of the records of a rollout; ordinals rise."""
    for row, place in placed(rows(source)):
        if isinstance(row, Row) and row.kind == "response_item" and said(row.payload) is not None:
            yield whole(row.ordinal) or 0, place.id


def _shared(one: Source, other: Source) -> str | None:
    """The last record of those that two rollouts begin with."""
    last: str | None = None
    for (_, mine), (_, theirs) in zip(_records(one), _records(other), strict=False):
        if mine != theirs:
            break
        last = mine
    return last
