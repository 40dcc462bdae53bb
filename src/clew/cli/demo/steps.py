"""What `clew demo` does, step by step."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clew.cli.demo.crash import Ack, Killed, kill_a_writer, missing
from clew.domain.conversations import ConversationSummary
from clew.domain.search import Hit
from clew.importers.bring import Imported, import_paths
from clew.store.opening import open_parts
from clew.store.store import Store
from clew.store.verify import Problem

DATA = Path(__file__).parent / "data"
ENGLISH, JAPANESE = "accessibility", "対応"
WRITER = "Written by a process that was killed"


class Listed(Struct, frozen=True):
    """The conversations that a list shows."""

    conversations: tuple[ConversationSummary, ...]


class Searched(Struct, frozen=True):
    """A search and what it found."""

    query: str
    hits: tuple[Hit, ...]


class Checked(Struct, frozen=True):
    """The store after the writer's death."""

    acknowledged: int
    stored: int
    missing: tuple[Ack, ...]
    problems: tuple[Problem, ...]

    @property
    def whole(self) -> bool:
        """Whether all is there that has to be, and nothing else is wrong."""
        return self.acknowledged > 0 and not self.missing and not self.problems


Step = Imported | Listed | Searched | Killed | Checked


def fill(folder: Path) -> Path:
    """Put the transcripts into a folder, with the notice of where they come from; gives the path of
    the store to make there."""
    shutil.copytree(DATA / "transcripts", folder / "transcripts", copy_function=shutil.copyfile)
    shutil.copyfile(DATA / "NOTICE.md", folder / "NOTICE.md")
    return folder / "clew.db"


def steps(store: Path, profile: str) -> Iterator[Step]:
    """Do them all on a store that is not there yet; each is given when it is done."""
    with Store(open_parts(store, None, None, None)) as opened:
        mine = opened.profile(profile)
        yield import_paths(mine, store.parent / "transcripts")
        opened.search_index.catch_up()
        yield Listed(mine.list().items)
        for query in (ENGLISH, JAPANESE):
            yield Searched(query, mine.search(query).hits)
        target = mine.create(source="demo", title=WRITER).id
    killed = kill_a_writer(store, profile, target)
    yield killed
    with Store(open_parts(store, None, None, None, create=False)) as opened:
        messages = list(opened.profile(profile).open(target).messages())
        lost = missing(killed.acks, messages)
        yield Checked(len(killed.acks), len(messages), lost, tuple(opened.verify()))


def went_well(done: list[Step]) -> bool:
    """Whether each step showed what it is there to show."""
    return all(_showed(step) for step in done)


def _showed(step: Step) -> bool:
    match step:
        case Imported():
            return step.totals.messages > 0 and not step.totals.failed
        case Listed(conversations=found) | Searched(hits=found):
            return bool(found)
        case Killed():
            return not step.ended_itself
        case Checked():
            return step.whole
