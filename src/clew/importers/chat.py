"""One chat of a source: where each of its records belongs in the log.

The rules, for all formats:

- A record that is there is found by its uid and changes nothing. The source is read in the same
  order each time, so what was decided before is met again, not decided again.
- A record follows its parent. Where the parent is the newest of its line it is appended. Where it
  already has another child, a line format (`growth` "cut") has rewound: what that child began is
  hidden from there on, and the record appended. In trees, and for records without ids, it begins a
  branch.
- Parts of one API message, and results that answer its calls, are no second children.
- What a cut hides is gone on from in a branch of the line that the cut hides. Where a line has
  anything that did not come from the source, the source goes on in a branch.
"""

from __future__ import annotations

from msgspec.structs import replace

from clew.domain.compactions import BodyItem, Inline, Ref
from clew.domain.conversations import TitleOrigin, Workspace
from clew.domain.messages import Role
from clew.domain.text import clean, shorten
from clew.errors import ClewError
from clew.importers import naming
from clew.importers.drafting import Kind, as_said, conversation_of, draft_of, fitted, label
from clew.importers.format import Format
from clew.importers.line import SEEN, Line
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Kept,
    Named,
    Record,
    Rewound,
    Titled,
    Used,
)
from clew.importers.report import ChatReport, SourceReport
from clew.importers.spots import Origin, Spot, Spots
from clew.store.drafts import Prepared
from clew.store.importing import Importing, StoredChat, StoredLine
from clew.store.landing import Compact, Landing, Name, NewLine


class ChatPlan:
    """The lines of a chat and what the source adds to them. Reads the store once; lands nothing."""

    def __init__(
        self, chat: Chat, format: Format, store: Importing, stored: StoredChat,
        report: SourceReport, *, archive: bool, modified: int, again: bool,
    ) -> None:  # fmt: skip
        self._format, self._store, self._source_report = format, store, report
        self.chat = fitted(chat, report)
        self._archive, self._now = archive, modified
        self.name = naming.chat_name(chat.id)
        self.report = ChatReport(chat=chat.id, sub_agent=chat.origin is not None)
        self._gone = frozenset[str]() if again else stored.deleted
        self.deleted = self.name in self._gone
        self._left: dict[str, StoredLine] = {}
        """Branches that were left when the chat was deleted, which now comes back."""
        self._spots = Spots()
        self._digests: dict[Spot, bytes] = {}
        self._chain = naming.chain_start(format.name, chat.id)
        self._queue: list[Landing] = []
        self._fork: Spot | None = None
        """A resumed copy: the place of the newest record that it shares, until it has its own."""
        self._names: list[str] = []
        self._titles: dict[TitleOrigin, str] = {}
        """What the source calls the chat; its branches bear the same titles."""
        self.landed_messages = 0
        self._groups: set[str] | None = None
        self.origin: Origin | None = None
        if again and self.name in stored.deleted:
            self._left = {line.name: line for line in stored.lines}
        elif not self.deleted:
            for line in stored.lines:
                self._load(line, stored)
        self._take_title(chat)

    @property
    def lines(self) -> list[Line]:
        """The conversations of the chat, the first one first."""
        return self._spots.lines

    def _load(self, found: StoredLine, among: StoredChat) -> Line:
        """Take in a line that is here."""
        line = Line.of(found, len(self.lines))
        self.lines.append(line)
        origin_too = any(found.origin == other.no for other in among.lines)
        for seq, uid in self._store.uids(found, inherited=not origin_too):
            self._spots.load(uid, Spot(line, seq))
        if self._format.rewrites:
            for seq, digest in self._store.contents(found):
                self._digests[Spot(line, seq)] = digest
        if self.report.conversation is None:
            self.report.conversation = found.id
            self.report.title = next(filter(None, found.titles.values()), None)
        return line

    def adopt(self, shared: StoredChat) -> None:
        """The chat begins as another does: it is a copy of that one, resumed."""
        for line in shared.lines:
            self._load(line, shared)
        self._fork = Spot(self.lines[0], 0)
        self.report.conversation = None

    def updated(self, chat: Chat) -> None:
        """The source says more of the chat."""
        chat = fitted(chat, self._source_report)
        given = {f: getattr(chat, f) for f in Chat.__struct_fields__}
        kept = {f: v for f, v in given.items() if v not in (None, Workspace(), False)}
        self.chat = replace(self.chat, **kept)
        self._take_title(chat)

    def _take_title(self, chat: Chat) -> None:
        if chat.title is not None:
            self.titled(Titled(chat=chat.id, title=chat.title, origin=chat.title_origin))

    def rest(self) -> None:
        """Hold what is known in little space, until `wake`."""
        self._spots.rest()

    def wake(self) -> None:
        """Go on."""
        self._spots.wake()

    # ------------------------------------------------------------------ records

    def record(self, record: Record) -> bool:
        """Place a record; False when it is a repetition within the source."""
        uid = self._uid(record)
        spot = self._spots.find(uid)
        if spot is not None:
            if self._format.rewrites and record.id is not None:
                return self._rewritten(record, spot)
            return self._known(record, spot)
        self._place(record, uid)
        return True

    def _uid(self, record: Record) -> bytes:
        if record.id is not None:
            return self._record_uid(record.id)
        self._chain = naming.chained(self._chain, record.content)
        return self._chain

    def _known(self, record: Record, spot: Spot) -> bool:
        """A record that is there: follow it, as the run that brought it did."""
        line, seq = spot
        if line.has(seq, SEEN):
            return False
        parent = self._parent(record)
        self._follow(record, spot, parent, self._spots.is_parallel(record, parent))
        if self._fork is not None:
            self._fork = spot
        return True

    def _rewritten(self, record: Record, spot: Spot) -> bool:
        """A record of a format that writes them anew: what it says now may stand in the place of
        what it said."""
        assert record.id is not None
        self._known(record, spot)
        prepared = self._prepared(record, self._record_uid(record.id))
        if prepared is None:
            return True
        digest = self._store.digest(prepared)
        uid, version = self._record_uid(record.id), 0
        said: Spot | None = spot
        while said is not None:
            if self._digests.get(said) == digest:
                if said != spot:  # what follows it stands behind the newer version
                    self._spots.passed(said)
                return True
            version += 1
            uid = self._record_uid(record.id, version)
            said = self._spots.find(uid)
        line, seq = spot
        if line.ours or line.dropped or not line.visible(seq):
            self._source_report.skip("rewritten record of a line that went on here")
            return True
        again = Spot(line, line.append(prepared._replace(uid=uid, replaces=seq)))
        self._spots.put(uid, again)
        self._digests[again] = digest
        self.report.messages += 1
        line.mark(again.seq, SEEN)
        if record.spent is not None:
            line.spend(label(record.api_group) or uid.hex(), record.spent, prepared.at)
        self._spots.passed(again)
        return True

    def _place(self, record: Record, uid: bytes) -> None:
        parent = self._parent(record)
        parallel = self._spots.is_parallel(record, parent)
        line = self._line_for(record, uid, parent, parallel)
        if (there := self._spots.find(uid)) is not None:  # of a branch that was left
            self._follow(record, there, parent, parallel)
            return
        if line.dropped:
            self._spots.put(uid, Spot(line, 0))
            self._spots.passed(Spot(line, 0))
            return
        prepared = self._prepared(record, uid)
        if prepared is None:  # its children follow what it would have followed
            if parent is not None:
                self._spots.put(uid, parent)
            return
        spot = Spot(line, line.append(prepared))
        self._spots.put(uid, spot)
        if self._format.rewrites:
            self._digests[spot] = self._store.digest(prepared)
        self._follow(record, spot, parent, parallel)
        self.report.messages += 1
        self.report.title = self.report.title or prepared.title
        if record.spent is not None:
            line.spend(label(record.api_group) or uid.hex(), record.spent, prepared.at)

    def _follow(self, record: Record, spot: Spot, parent: Spot | None, parallel: bool) -> None:
        """Take a placed record as the newest of the chat."""
        self._spots.follow(record, spot, parent, parallel)
        line = spot.line
        if record.workspace is not None:
            line.cwd = label(record.workspace.cwd) or line.cwd
            line.git_branch = label(record.workspace.git_branch) or line.git_branch
        line.model = label(record.model) or line.model
        if record.created_at is not None:
            self._now = record.created_at

    # ------------------------------------------------------------------ where

    def _parent(self, record: Record) -> Spot | None:
        """The record that this one follows; None for a first one."""
        if record.parent == ROOT:
            return None
        if record.parent is not None:
            spot = self._spots.find(self._record_uid(record.parent))
            if spot is not None:
                return spot
            if self.lines:
                self._source_report.warn(
                    f"{self.chat.id}: record {record.id or '?'} names a parent that is not there "
                    f"({record.parent}); it follows the record before it"
                )
        return self._spots.last

    def _line_for(self, record: Record, uid: bytes, parent: Spot | None, parallel: bool) -> Line:
        """The line that a new record goes to, after what has to be hidden is."""
        if parent is None:
            return self._first_line(record, uid)
        line, seq = parent
        if line.dropped:
            return line
        if self._fork is not None:
            return self._branch(record, uid, self._fork if self._fork.seq else parent)
        if line.ours:
            return self._branch(record, uid, Spot(line, self._tip(line, seq, parallel)))
        if self._format.growth == "branch":
            fits = (seq == line.head and line.visible(seq)) or line.ends_at(seq)
            return line if fits else self._branch(record, uid, parent)
        child = None if parallel else self._spots.child(parent)
        if child is not None and child.line.visible(child.seq):
            if child.line.ours:
                return self._branch(record, uid, parent)
            return self._rewind(child, uid, record.created_at)
        if line.ends_at(seq):  # the tool took back what followed
            return line
        # What lies behind the parent and was not shown came from another file.
        elsewhere = seq < line.head and line.seen_to < line.head
        if child is not None or elsewhere or not line.visible(seq):
            return self._branch(record, uid, parent)
        return line

    def _tip(self, line: Line, seq: int, parallel: bool) -> int:
        """Where to leave a line that went on here: behind the last imported record, unless the
        source itself goes on from further up."""
        last = line.imported_to if line.imported_to is not None else line.head
        beyond = not parallel and self._spots.child(Spot(line, seq)) is not None
        return seq if beyond or last < seq else max(last, line.base)

    def _rewind(self, child: Spot, uid: bytes, at: int | None) -> Line:
        line = child.line
        line.cut(child.seq, self._format.name, naming.cut_uid(uid), at or self._now)
        self.report.cuts += 1
        return line

    def _first_line(self, record: Record, uid: bytes) -> Line:
        """The line of a record that follows no other."""
        if not self.lines:
            origin = self.origin
            if origin is None:
                return self._make(record, self.name, "root", None, 0)
            kind = "delegate" if origin.at is None else "branch"
            return self._make(record, self.name, kind, origin.conversation, origin.at or 0)
        main = self.lines[0]
        if record.parent == ROOT or self._format.growth == "branch":
            return self._make(
                record, naming.branch_name(self.name, uid), "root", None, 0, branch=True
            )
        if main.ours:
            return self._branch(record, uid, Spot(main, self._tip(main, main.head, False)))
        return main

    def _branch(self, record: Record, uid: bytes, at: Spot) -> Line:
        """A line that leaves another behind a record."""
        if self._fork is not None:
            name, self._fork = self.name, None
        else:
            name = naming.branch_name(self.name, uid)
        if at.seq == 0:
            return self._make(record, name, "root", None, 0, branch=True)
        return self._make(record, name, "branch", at.line.id, at.seq, branch=True)

    def _make(
        self, record: Record, name: str, kind: Kind, origin: str | None, at: int,
        branch: bool = False,
    ) -> Line:  # fmt: skip
        left = self._left.pop(name, None)
        if left is not None:
            return self._load(left, StoredChat((), frozenset()))
        if name in self._gone:
            line = Line("", len(self.lines), name, 0, 0, None)
            line.dropped = True
            self.lines.append(line)
            self._source_report.skip("branch that was deleted here")
            return line
        # What is planned so far lands before the branch: it inherits the cuts and the compaction
        # that are in force now.
        self._seal()
        id = self._store.mint()
        new = conversation_of(
            self.chat, self._format.name, id, kind, record, self._now, archived=self._archive,
            now=self._store.now(),
        )  # fmt: skip
        line = Line(id, len(self.lines), name, at, at, NewLine(new, kind, origin, at))
        place = record.workspace or self.chat.workspace
        line.cwd, line.git_branch = label(place.cwd), label(place.git_branch)
        line.model = label(record.model or self.chat.model)
        line.settled()
        line.call(Name(name, at + 1))
        for other in self._names:
            line.call(Name(other))
        self._names = []
        self.lines.append(line)
        self.report.branches += branch
        for given, title in self._titles.items():
            line.retitle(title, given)
        if self.report.conversation is None:
            self.report.conversation, self.report.title = id, self.chat.title
            self.report.state = "new"
        return line

    # ------------------------------------------------------------------ drafts

    def _prepared(self, record: Record, uid: bytes) -> Prepared | None:
        """A record ready to insert; None, and named as damaged, when the log cannot hold it."""
        last = self._spots.last
        draft = draft_of(record, uid, self._now, None if last is None else last.line.model)
        try:
            return as_said(self._store.prepare([draft])[0], record)
        except ClewError as error:
            self._source_report.damage(f"record {record.id or uid.hex()}", str(error))
            return None

    # ------------------------------------------------------------------ the rest

    def compacted(self, event: Compacted) -> None:
        """The source compacted here."""
        line, covered = self._spots.current, self._spots.last
        if line is None or event.id in line.compactions or line.ours or line.dropped:
            return
        if line.head > line.seen_to:  # an earlier run was here, and the store could not take it
            return
        if event.after is not None:
            covered = self._spots.find(self._record_uid(event.after)) or covered
        if covered is None:
            return
        body: list[BodyItem] = []
        for item in event.body:
            if isinstance(item, Inline):
                body.append(item)
            elif (ref := self._ref(item)) is not None:
                body.append(ref)
            else:
                self._source_report.skip("kept message of a compaction that is not there")
        if not body:  # it would take all that it covers from the model
            self._source_report.skip("compaction without a summary")
            return
        line.compactions |= {event.id}
        line.step(
            Compact(
                min(covered.seq, line.head), tuple(body), event.tokens_before, event.tokens_after,
                {**(event.receipt or {}), "id": event.id}, event.at or self._now,
            )
        )  # fmt: skip
        self.report.compactions += 1

    def _ref(self, kept: Kept) -> Ref | None:
        first = self._spots.find(self._record_uid(kept.first))
        last = self._spots.find(self._record_uid(kept.last))
        if first is None or last is None or first.line is not last.line or last.seq < first.seq:
            return None
        return Ref(first.seq, last.seq)

    def _record_uid(self, id: str, version: int = 0) -> bytes:
        return naming.uid_of(self._format.name, self.chat.id, id, version)

    def rewound(self, event: Rewound) -> None:
        """The tool took back a record and all after it."""
        uid = self._record_uid(event.first)
        spot = self._spots.find(uid)
        if spot is None or spot.line.dropped or not spot.line.visible(spot.seq):
            return
        if spot.line.ours or spot.line.head > spot.line.seen_to:
            self._source_report.skip("rewind in a line that went on")
            return
        by = event.by or self._format.name
        spot.line.cut(spot.seq, by, naming.cut_uid(uid), self._now)
        self.report.cuts += 1

    def titled(self, event: Titled) -> None:
        """The source gives a title."""
        title = shorten(clean(event.title), 80)
        if title is None:
            return
        self._titles[event.origin] = title
        self.report.title = title
        for line in self.lines:
            if line.name == self.name or line.name.startswith(f"{self.name}#"):
                line.retitle(title, event.origin)

    def named(self, event: Named) -> None:
        """The chat is known by another id from here on."""
        line = self._spots.current
        name = naming.chat_name(event.id)
        if line is not None and not line.dropped:
            line.call(Name(name, line.head + 1, "segment"))

    def used(self, event: Used) -> None:
        """A model call without a message of its own."""
        line = self._spots.current
        if line is None or line.dropped:
            return
        group = label(event.group) or "?"
        if self._groups is None:
            self._groups = set()
            for each in self.lines:
                if each.stored is not None:
                    self._groups |= self._store.groups(each.stored)
        if group not in self._groups:
            self._groups.add(group)
            line.spend(group, event.spent, event.at or self._now)

    def first_name(self, record: Record) -> str | None:
        """The name by which the chat is known for its first record."""
        if not self._format.universal or record.id is None:
            return None
        return naming.record_name(self._uid(record))

    def name_by(self, name: str) -> None:
        """Also claim this name with the first line."""
        self._names.append(name)

    def finish(self) -> None:
        """The source has been read to its end."""
        if self._fork is not None and self._fork.seq and not self.deleted:
            self._fork.line.call(Name(self.name))
            self.report.conversation = self._fork.line.id

    def main(self) -> str:
        """The conversation of the chat; made without messages if it has none yet, for a sub-agent
        whose messages come first."""
        if not self.lines:
            self._first_line(Record(chat=self.chat.id, role=Role.USER, parts=()), b"")
        return self.lines[0].id

    def place_of(self, record: str | None) -> Spot | None:
        """Where a record of this chat is; its newest when none is named."""
        return self._spots.last if record is None else self._spots.find(self._record_uid(record))

    @property
    def pending(self) -> int:
        """Messages planned that have not landed."""
        return self.report.messages - self.landed_messages

    def landings(self) -> list[Landing]:
        """The plan so far; it is the caller's to land, in order."""
        self._seal()
        queue, self._queue = self._queue, []
        return queue

    def landed(self) -> None:
        """What was planned is in the log."""
        self.landed_messages = self.report.messages

    def _seal(self) -> None:
        for line in self.lines:
            if line.is_changed and not line.dropped:
                self._queue.extend(line.seal(self._format.name))
