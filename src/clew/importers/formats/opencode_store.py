"""Where OpenCode keeps sessions: a folder with a file for each session, message and part, and since
2026 a database with a row for each. Both give the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.errors import TooLarge
from clew.importers.decode import decode
from clew.importers.fields import ident, json_of, mapping, whole
from clew.importers.foreign import Foreign, loose
from clew.importers.records import Damaged
from clew.importers.source import Source

_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""Ids that may name a folder."""

_SESSION = ("id", "parent_id", "directory", "title", "version", "slug", "revert")


class Message(NamedTuple):
    """A message's own value, and its parts in their order."""

    info: dict[str, Any]
    parts: list[dict[str, Any]]


class Folder:
    """`session/<project>/<id>.json`, `message/<session>/<id>.json`, `part/<message>/<id>.json`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def sessions(self) -> Iterator[dict[str, Any] | Damaged]:
        for file in self._source.files("session/*/*.json"):
            yield self._value(file)

    def messages(self, session: str) -> Iterator[Message | Damaged]:
        """In the order of the tool: by time, then by id."""
        found: list[dict[str, Any]] = []
        for value in self._values("message", session):
            if isinstance(value, Damaged):
                yield value
            else:
                found.append(value)
        for info in sorted(found, key=_when):
            parts: list[dict[str, Any]] = []
            for value in self._values("part", ident(info.get("id")) or ""):
                if isinstance(value, Damaged):
                    yield value
                else:
                    parts.append(value)
            yield Message(info, parts)

    def others(self) -> dict[str, int]:
        return {}

    def _values(self, kind: str, id: str) -> Iterator[dict[str, Any] | Damaged]:
        if not _SAFE.fullmatch(id):
            return
        for file in self._source.files(f"{kind}/{id}/*.json"):
            yield self._value(file)

    def _value(self, file: Source) -> dict[str, Any] | Damaged:
        where = file.path.relative_to(self._source.path).as_posix()
        try:
            value = mapping(decode(file.document()))
        except (ValueError, TooLarge, OSError) as error:
            return Damaged(where, str(error))
        self._source.done += file.size
        return value or Damaged(where, "no JSON object")


class Rows:
    """The tables `session`, `message` and `part`; most of a row is JSON in `data`."""

    def __init__(self, database: Foreign) -> None:
        self._database = database

    def sessions(self) -> Iterator[dict[str, Any] | Damaged]:
        known = self._database.columns("session")
        picked = [name if name in known else "NULL" for name in _SESSION]
        sql = f"SELECT time_created, {', '.join(picked)} FROM session ORDER BY id"  # noqa: S608
        for created, *texts in self._database.rows(sql):
            id, parent, directory, title, version, slug, revert = map(loose, texts)
            yield {
                "id": id,
                "parentID": parent,
                "directory": directory,
                "title": title,
                "version": version,
                "slug": slug,
                "time": {"created": created},
                "revert": json_of(revert),
            }

    def messages(self, session: str) -> Iterator[Message | Damaged]:
        """In the order of the tool: by time, then by id."""
        rows = self._database.rows(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            session,
        )
        for id, data in rows:
            info = mapping(json_of(loose(data)))
            if not info:
                yield Damaged(f"message {id}", "its data is no JSON object")
                continue
            parts: list[dict[str, Any]] = []
            for part_id, value in self._database.rows(
                "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", id
            ):
                if part := mapping(json_of(loose(value))):
                    parts.append({**part, "id": part_id})
                else:
                    yield Damaged(f"part {part_id}", "its data is no JSON object")
            yield Message({**info, "id": id}, parts)

    def others(self) -> dict[str, int]:
        """Rows of tables that are not imported."""
        counts: dict[str, int] = {}
        for table in ("session_message", "todo"):
            if self._database.columns(table):
                sql = f"SELECT count(*) FROM {table}"  # noqa: S608
                counts[table] = next(self._database.rows(sql))[0]
        return counts


def _when(info: dict[str, Any]) -> tuple[int, str]:
    return whole(mapping(info.get("time")).get("created")) or 0, ident(info.get("id")) or ""
