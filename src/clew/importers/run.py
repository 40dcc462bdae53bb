"""One run of an import: sources one after another, landed in few transactions."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from clew.errors import ClewError, ImportOvertaken
from clew.importers import naming
from clew.importers.chat import ChatPlan
from clew.importers.format import Format
from clew.importers.job import Job, count, tell
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Fork,
    Record,
    Rewound,
    Skipped,
    Titled,
    Used,
    Warned,
)
from clew.importers.report import SourceReport
from clew.importers.source import UNREADABLE, Source
from clew.importers.spots import Origin
from clew.store.importing import Importing, StoredChat
from clew.store.landing import Landing

BATCH = 2000
"""Messages in one transaction, about: some tens of milliseconds of the write lock."""
WEIGHT = 32 << 20
"""Bytes of sources after which what was read of them lands, however few messages they are: until
then it is held."""
TRIES = 5
"""Times that a source is read because somebody else wrote to what it belongs to."""
LOOK = 128
"""Events between two looks at how much waits."""

Progress = Callable[[Source, int], None]
"""Called with a source and how many of its bytes were read."""


class Options(Struct, frozen=True, kw_only=True):
    """How to import."""

    archive: bool = False
    """Conversations come in archived."""
    again: bool = False
    """What was deleted here comes back."""
    dry_run: bool = False
    """Only say what would be done."""


class Importer:
    """Imports sources into one profile. Small ones share a transaction; `land` lands the rest."""

    def __init__(
        self, store: Importing, options: Options, progress: Progress | None = None
    ) -> None:
        self._store, self._options = store, options
        self._progress = progress or _silent
        self._waiting: list[tuple[Job, list[Landing]]] = []
        """Sources that were read and whose landings wait for company."""
        self._claimed: set[str] = set()
        """The names that these claim."""
        self._count = self._weight = 0
        """Messages in them, and bytes of the sources."""

    def add(self, source: Source, format: Format) -> SourceReport:
        """Read a source. What the report says has happened once `land` returns."""
        job = Job(source, format)
        self.read(job)
        return job.report

    def read(self, job: Job) -> None:
        """Read what a job's source says, or says more; as `add`."""
        self._read(job, alone=False)

    def land(self) -> None:
        """Land all that waits: in one transaction, or one by one when that is refused."""
        waiting, self._waiting = self._waiting, []
        self._claimed.clear()
        self._count = self._weight = 0
        try:
            self._store_all([landing for _, landings in waiting for landing in landings])
        except ClewError:
            for job, landings in waiting:
                self._land_one(job, landings)
        else:
            for job, _ in waiting:
                job.took_place()

    # ------------------------------------------------------------------ reading

    def _read(self, job: Job, alone: bool) -> None:
        """Read a source to its end; `alone`: and land it at once."""
        landings: list[Landing] = []
        for attempt in range(TRIES):
            try:
                self._read_once(job)
                landings = job.landings()
                if alone:
                    self._store_all(landings)
                    job.took_place()
                break
            except ImportOvertaken as error:
                if attempt == TRIES - 1 or job.is_resumed:
                    job.give_up(error)
                    return
                job.begin_again()
                alone = True
            except ClewError as error:
                job.report.error = str(error)
                return
        self._progress(job.source, job.source.size)
        if not alone:
            self._waiting.append((job, landings))
            self._claimed |= job.names
            self._count += count(landings)
            self._weight += job.source.size
            if self._count >= BATCH or self._weight >= WEIGHT:
                self.land()

    def _read_once(self, job: Job) -> None:
        try:
            most = job.source.done + WEIGHT - self._weight
            for number, event in enumerate(job.events()):
                self._take(job, event)
                if number % LOOK and job.source.done < most:
                    continue
                self._progress(job.source, job.source.done)
                if self._count + job.pending >= BATCH or job.source.done >= most:
                    self._land_so_far(job)
                    most = job.source.done + WEIGHT
        except UNREADABLE as error:
            job.report.error = f"{type(error).__name__}: {error}"
        except ClewError as error:
            if isinstance(error, ImportOvertaken):
                raise
            job.report.error = str(error)
        job.finish()

    def _take(self, job: Job, event: Event) -> None:
        report = job.report
        match event:
            case Record() | Compacted() | Rewound() | Titled() | Used() if job.is_copy(event):
                pass
            case Record():
                plan = self._plan(job, event.chat)
                if plan.deleted:
                    report.skip("message of a conversation that was deleted here")
                elif not self._record(job, plan, event):
                    report.skip("repeated record")
            case Chat():
                self._chat(job, event)
            case Skipped(kind=kind, count=many):
                report.skip(kind, many)
            case Damaged(where=where, reason=reason):
                report.damage(where, reason)
            case Warned(text=text):
                report.warn(text)
            case _:
                plan = self._plan(job, event.chat)
                if not plan.deleted:
                    tell(plan, event)

    def _record(self, job: Job, plan: ChatPlan, record: Record) -> bool:
        if not plan.lines and plan.origin is None:
            name = plan.first_name(record)
            if name is not None:
                shared = self._find(job, name)
                if shared.lines:
                    plan.adopt(shared)
                else:
                    plan.name_by(name)
                    job.names.add(name)
        return plan.record(record)

    # ------------------------------------------------------------------ chats

    def _plan(self, job: Job, chat: str) -> ChatPlan:
        return job.plan(chat) or self._begin(job, Chat(id=chat))

    def _chat(self, job: Job, chat: Chat) -> None:
        plan = job.plan(chat.id)
        if plan is None:
            self._begin(job, chat)
        else:
            plan.updated(chat)

    def _begin(self, job: Job, chat: Chat) -> ChatPlan:
        plan = ChatPlan(
            chat, job.format, self._store, self._find(job, naming.chat_name(chat.id)), job.report,
            archive=self._options.archive, again=self._options.again,
            modified=job.source.modified or self._store.now(),
        )  # fmt: skip
        if not plan.lines:
            plan.origin = self._origin(job, chat)
        job.add(plan)
        begun = plan.origin is not None or (plan.lines and plan.lines[0].base > 0)
        if begun and chat.fork is not None and chat.fork.copied and chat.fork.record is not None:
            job.copies[chat.id] = chat.fork.record
        return plan

    def _find(self, job: Job, name: str) -> StoredChat:
        """The lines that are here under a name; what claims it and waits lands first."""
        if name in job.names or name in self._claimed:
            self._land_so_far(job)
        return self._store.find(job.format.name, name)

    def _origin(self, job: Job, chat: Chat) -> Origin | None:
        if chat.fork is not None:
            return self._forked(job, chat.fork)
        if chat.origin is None or chat.origin == chat.id:
            return None
        known = job.plan(chat.origin)
        if known is not None and not known.deleted:
            return Origin(known.main(), None)
        found = self._find(job, naming.chat_name(chat.origin))
        return Origin(found.lines[0].id, None) if found.lines else None

    def _forked(self, job: Job, fork: Fork) -> Origin | None:
        known = job.plan(fork.chat)
        if known is not None:
            spot = known.place_of(fork.record)
            return None if spot is None or not spot.seq else Origin(spot.line.id, spot.seq)
        found = self._find(job, naming.chat_name(fork.chat))
        if fork.record is None:
            return next((Origin(line.id, line.head) for line in found.lines if line.head), None)
        wanted = naming.uid_of(job.format.name, fork.chat, fork.record)
        return next(
            (
                Origin(line.id, seq)
                for line in found.lines
                for seq, uid in self._store.uids(line, inherited=False)
                if uid == wanted
            ),
            None,
        )

    # ------------------------------------------------------------------ landing

    def _land_so_far(self, job: Job) -> None:
        """Land what waits, then what is planned of the source that is being read."""
        self.land()
        self._store_all(job.landings())
        job.took_place()

    def _land_one(self, job: Job, landings: list[Landing]) -> None:
        try:
            self._store_all(landings)
            job.took_place()
        except ImportOvertaken as error:
            if job.is_resumed:
                job.give_up(error)
                return
            job.begin_again()
            self._read(job, alone=True)
        except ClewError as error:
            job.report.error = str(error)

    def _store_all(self, landings: list[Landing]) -> None:
        if landings and not self._options.dry_run:
            self._store.land(landings)


def _silent(_: Source, done: int) -> None:
    pass
