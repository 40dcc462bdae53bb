"""clew export: conversations as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import click
from msgspec import Struct

from clew.cli import jsonout
from clew.cli.opening import open_profile
from clew.cli.params import ConversationId, json_option
from clew.cli.progress import Report, progress
from clew.cli.redacting import redaction_of
from clew.cli.registry import VERSION, load
from clew.cli.settings import Settings, home_short, settings_of
from clew.clock import SystemClock
from clew.domain.conversations import ConversationInfo
from clew.exporters import atif, chat, clew_jsonl, html, html_index, markdown, responses
from clew.exporters.redaction import info_of, redacted
from clew.exporters.saving import Write, check, file_name, save
from clew.exporters.transcript import Transcript, transcript
from clew.store.findings import counted, size_text
from clew.store.profile import Profile

Text = Callable[[Transcript], Iterator[str]]

CLEW, ATIF, HTML = "clew", "atif", "html"
NAMED = 20
"""Files of a folder that are named one by one; of more it is said how many."""
EXTENSIONS = {
    CLEW: "jsonl", "chat": "json", "responses": "json", ATIF: "json", "markdown": "md",
    HTML: "html",
}  # fmt: skip
TEXTS: dict[str, Text] = {
    "chat": chat.text, "responses": responses.text, ATIF: atif.text, "markdown": markdown.text,
}  # fmt: skip


class Options(Struct, frozen=True):
    """What the command line asks for."""

    ids: tuple[str, ...]
    all: bool
    format: str
    output: str | None
    branches: bool | None
    delegates: bool | None
    force: bool
    redact: bool
    redact_people: bool
    as_json: bool

    @property
    def redacts(self) -> bool:
        return self.redact or self.redact_people

    def with_branches(self) -> bool:
        """A file of clew's holds the whole family, unless told otherwise."""
        return self.format == CLEW if self.branches is None else self.branches

    def with_delegates(self) -> bool:
        return self.format in (CLEW, ATIF) if self.delegates is None else self.delegates


class File(Struct, frozen=True):
    """A file that was written."""

    path: str
    bytes: int
    conversations: int
    messages: int


class Written(Struct, frozen=True, omit_defaults=True):
    """What a run has written."""

    files: list[File]
    index: str | None = None
    """The page that lists the others."""


@click.command("export")
@click.argument("ids", metavar="[ID...]", type=ConversationId(), nargs=-1)
@click.option("--all", is_flag=True, help="Every conversation of the profile, archived ones too.")
@click.option(
    "--format", "-f", type=click.Choice(list(EXTENSIONS)), default=CLEW,
    help="clew: lossless, for `clew import`. chat, responses, atif: for other tools. markdown, "
    "html: for people. [clew]",
)  # fmt: skip
@click.option(
    "--output", "-o", metavar="FILE|FOLDER",
    help="Where to; a folder if it is one, or ends in a slash. [standard output, as with -]",
)  # fmt: skip
@click.option(
    "--with-branches/--no-branches",
    "branches",
    default=None,
    help="Branches of what is named, too. [only with clew]",
)
@click.option(
    "--with-delegates/--no-delegates",
    "delegates",
    default=None,
    help="Sub-agents' conversations, too. [only with clew and atif]",
)
@click.option(
    "--redact", is_flag=True,
    help="Without keys, passwords and home folders, files that are no pictures, signed thinking.",
)  # fmt: skip
@click.option(
    "--redact-people", is_flag=True,
    help="The same, also without mail addresses, phone numbers, user names and authors.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there.")
@json_option
@click.pass_context
def command(ctx: click.Context, **given: Any) -> None:
    """Write conversations to files, for clew, other tools and people.

    With clew's own format several conversations make one file, and nothing is lost: `clew import`
    brings them back as they were. Of the others each conversation makes a file, and -o is the
    folder for them.

    \b
    clew export --all -o backup.jsonl
    clew export 7c3j4 --format html -o talk.html
    clew export --all --format markdown -o notes/
    clew export 7c3j4 --format html --redact -o talk.html
    """
    output = given.pop("output")
    options = Options(output=None if output == "-" else output, **given)
    _check(ctx, options)
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        written = _Export(settings, profile, options).run()
    if options.output is None:
        return
    if options.as_json:
        jsonout.write(settings.screen.stream, written)
    else:
        _tell(settings, written)


def _check(ctx: click.Context, options: Options) -> None:
    if options.all == bool(options.ids):
        ctx.fail("name conversations, or give --all; `clew list` shows what is there")
    if options.output is None and options.as_json:
        ctx.fail("--json tells which files were written; give -o as well")


def _tell(settings: Settings, written: Written) -> None:
    files = written.files
    if len(files) <= NAMED:
        for file in files:
            _line(settings, home_short(file.path), [file])
    else:
        _line(
            settings,
            f"{len(files):,} files in {home_short(str(Path(files[0].path).parent))}",
            files,
        )
    if written.index is not None:
        settings.screen.line(f"  {home_short(written.index)} lists them.")
    if not files:
        settings.notes.line("There is nothing to export.")


def _line(settings: Settings, what: str, files: list[File]) -> None:
    screen = settings.screen
    conversations = counted(sum(file.conversations for file in files), "conversation")
    messages = counted(sum(file.messages for file in files), "message")
    size = size_text(sum(file.bytes for file in files))
    screen.line((screen.sign("✓", "ok"), "green"), f" {what}: {conversations}, {messages}, {size}.")


class _Export:
    """One run."""

    def __init__(self, settings: Settings, profile: Profile, options: Options) -> None:
        self._settings, self._profile, self._options = settings, profile, options
        self._redaction = redaction_of(settings, options.redact_people) if options.redacts else None
        self._pages: dict[str, str] = {}
        """Names of the files in the folder, by the ids of their conversations."""

    def run(self) -> Written:
        """Write everything."""
        options, ids = self._options, self._ids()
        if options.format == CLEW:
            return Written(files=[self._lossless(ids)])
        if options.output is not None:
            places = self._places(ids, options.output)
            self._pages = {id: path.name for id, path in places}
            return Written(files=list(self._files(places)), index=self._index(places))
        if len(ids) > 1:
            raise click.UsageError(f"{len(ids)} conversations make as many files; give -o FOLDER")
        for id in ids:
            self._text(id, _output(self._settings.screen.stream), None)
        return Written(files=[])

    # ------------------------------------------------------------------ clew's own

    def _lossless(self, ids: list[str]) -> File:
        options, profile = self._options, self._profile
        whole = options.all and options.branches is not False and options.delegates is not False
        first = clew_jsonl.header(profile.name, SystemClock().now(), version(), whole)
        found: list[clew_jsonl.Exported] = []

        def make(write: Write) -> None:
            write(first)
            with progress(self._settings.notes, "Exporting") as report:
                found.append(clew_jsonl.write(profile, ids, write, report, self._redaction))

        place, size = Path(options.output or ""), 0
        if options.output is None:
            make(_output(self._settings.screen.stream))
        else:
            if _is_folder(options.output):
                _make_folder(place)
                place = place / file_name("", profile.name, EXTENSIONS[CLEW])
            size = save(place, options.force, make)
        if found[0].waiting:
            waiting = counted(found[0].waiting, "message")
            self._settings.notes.line(f"Not in the file: {waiting} waiting in inboxes.")
        return File(str(place), size, found[0].conversations, found[0].messages)

    def _ids(self) -> list[str]:
        """The conversations of this run, origins first."""
        options, profile = self._options, self._profile
        if options.all and options.format == CLEW and self._everything():
            return list(self._profile.transfer().family())
        if options.all:
            return [id for id in self._profile.transfer().family() if self._wanted(id)]
        named = list(dict.fromkeys(profile.resolve(id).id for id in options.ids))
        delegates = options.with_delegates() and options.format != ATIF
        if options.format != CLEW and not options.with_branches() and not delegates:
            return named
        family = self._profile.transfer().family(
            *named, branches=options.with_branches(), delegates=delegates
        )
        if options.format == CLEW:
            return list(family)
        return [id for id in family if id in named or self._wanted(id)]

    def _everything(self) -> bool:
        return self._options.with_branches() and self._options.with_delegates()

    def _wanted(self, id: str) -> bool:
        """Of a conversation that was not named: whether its kind is. Listed are branches, too."""
        kind = self._profile.open(id).info().kind
        if kind == "delegate":
            return self._options.delegates is True or (
                self._options.format == CLEW and self._options.delegates is None
            )
        return kind == "root" or self._options.branches is not False

    # ------------------------------------------------------------------ one file each

    def _places(self, ids: list[str], output: str) -> list[tuple[str, Path]]:
        """Each conversation with its file; refused before one is written."""
        place, extension = Path(output), EXTENSIONS[self._options.format]
        if len(ids) == 1 and not _is_folder(output):
            places = [(ids[0], place)]
        else:
            _make_folder(place)
            titles = ((id, self._info(id).title or "") for id in ids)
            places = [(id, place / file_name(title, id, extension)) for id, title in titles]
        listed = [index] if (index := self._index_of(places)) is not None else []
        for path in (*(path for _, path in places), *listed):
            check(path, self._options.force)
        return places

    def _index_of(self, places: list[tuple[str, Path]]) -> Path | None:
        """Where the page that lists the others goes. One page needs none, and would replace that of
        an earlier run."""
        if self._options.format != HTML or len(places) < 2:
            return None
        return places[0][1].with_name(html_index.NAME)

    def _index(self, places: list[tuple[str, Path]]) -> str | None:
        path = self._index_of(places)
        if path is None:
            return None
        pages = (html_index.Page(self._info(id), at.name) for id, at in places)
        title = f"Conversations of {self._profile.name}"
        title = title if self._redaction is None else self._redaction(title)

        def make(write: Write) -> None:
            for piece in html_index.text(title, pages):
                write(piece.encode("utf-8", "backslashreplace"))

        save(path, self._options.force, make)
        return str(path)

    def _files(self, places: list[tuple[str, Path]]) -> Iterator[File]:
        several = len(places) > 1
        with progress(self._settings.notes, "Exporting") as report:
            for done, (id, path) in enumerate(places):
                if several:
                    report(done, len(places))
                yield self._file(id, path, None if several else report)

    def _file(self, id: str, path: Path, report: Report | None) -> File:
        size = save(path, self._options.force, lambda write: self._text(id, write, report))
        return File(str(path), size, 1, self._profile.open(id).info().message_count)

    def _text(self, id: str, write: Write, report: Report | None) -> None:
        source = self._source(id)
        if report is not None:
            source = _counting(source, report)
        if self._options.format == ATIF and self._options.with_delegates():
            pieces = atif.text(source, self._source)
        elif self._options.format == HTML:
            pieces = html.text(source, self._pages)
        else:
            pieces = TEXTS[self._options.format](source)
        for piece in pieces:
            write(piece.encode("utf-8", "backslashreplace"))

    def _source(self, id: str) -> Transcript:
        source = transcript(self._profile.open(id))
        return source if self._redaction is None else redacted(source, self._redaction)

    def _info(self, id: str) -> ConversationInfo:
        info = self._profile.open(id).info()
        return info if self._redaction is None else info_of(info, self._redaction)


def _counting(source: Transcript, report: Report) -> Transcript:
    """The same, telling how far its reader is."""

    def entries() -> Iterator[Any]:
        done = 0
        for entry in source.entries():
            yield entry
            done += len(entry.messages)
            if done % 100 == 0:
                report(done, source.info.message_count)

    return source._replace(entries=entries)


def _is_folder(output: str) -> bool:
    return output.endswith(("/", "\\")) or Path(output).is_dir()


def _make_folder(place: Path) -> None:
    """For its owner only, if it is not there."""
    if place.exists() and not place.is_dir():
        raise click.UsageError(f"{place} is a file; give a folder for several files")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)


def _output(stream: TextIO) -> Write:
    """Standard output, as bytes where it has them: a file is UTF-8 whatever the terminal is."""
    raw = getattr(stream, "buffer", None)
    if raw is not None:
        stream.flush()
        return cast(Write, raw.write)
    return lambda data: stream.write(data.decode())


def version() -> str:
    """Which clew writes a file."""
    return str(cast(Any, load(VERSION)).text()).partition(" (")[0]
