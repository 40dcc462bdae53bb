"""Commands of a shell: what they run, what their output is shown through, what files they touch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.compaction.ledger.paths import is_file

MOST_COMMAND = 20_000
"""Characters of a command that are searched for files."""
_MOST_READ = 2_000
"""Characters of a command that are taken apart; a longer one is a script."""
_TOKEN = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|\|\||&&|[|;]")
_CD = re.compile(r"cd\s+(\"[^\"]{1,200}\"|'[^']{1,200}'|[^\s;&|]{1,200})\s*(?:&&|;)\s*")
_BEFORE = re.compile(r"(?:time\s+|timeout\s+(?:-\S+\s+)*\d\S*\s+)+")
_JOINED = re.compile(r"\s*(?:\d?>&\d|\d?>\s*/dev/null|&>\s*/dev/null)\s*$")
_TOLD = re.compile(r"\s*echo\b")
_FILTER = re.compile(
    r"\s*(?:head|tail|grep|egrep|fgrep|rg|wc|cat|sort|uniq|less|awk|sed|tee|cut|tr|jq|column)\b"
)
_PICKS = re.compile(r"\s*(?:grep|egrep|fgrep|rg|awk|sed|jq|cut)\b")
_COUNTS = re.compile(r"\s*(?:wc\b|(?:grep|egrep|rg)\s(?:-\w+\s)*-\w*c)")
_FOR_TROUBLE = re.compile(r"error|fail|exception|panic", re.I)
_FILE = r"(?:[\w@.+~-]{0,80}/){0,12}[\w@.+-]{1,80}\.[A-Za-z]\w{0,7}"
_EDIT = re.compile(
    r"(?:>>?\s*|\btee\s+(?:-a\s+)?|"
    r"\bsed\s+-i\S*\s+(?:''\s+)?(?:'[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|\S{1,200})\s+|"
    rf"\btouch\s+)[\"']?(?P<path>/?{_FILE})"
)  # fmt: skip
_READ = re.compile(
    rf"\b(?:cat|head|tail|less|more|bat|nl|wc|sed\s+-n|view|open)\s+(?:-\S+\s+|\d+\s+|"
    rf"'[^'\n]{{0,60}}'\s+){{0,4}}[\"']?(?P<path>/?{_FILE})"
)
_GONE = re.compile(
    r"(?:^|[\n;&|(])[ \t]{0,20}(?:sudo\s+)?(?:git\s+(?:-C\s+\S{1,200}\s+)?)?"
    r"(?:rm|unlink|(?P<mv>mv))\s+(?:-\S{1,40}\s+){0,5}(?P<paths>[^\n;&|]{1,2000})"
)
_AS_IT_STANDS = re.compile(r"[^<>$(){}*?\[\]]{1,300}")
_LOOKS = re.compile(
    r"(?:[\w./-]*/)?(?:grep|egrep|rg|ag|cat|head|tail|less|ls|find|fd|sed -n|wc|nl|tree|"
    r"git (?:show|diff|log|blame|grep|status|branch)|diff|echo|printf|which|awk|jq|stat|file|du|"
    r"pwd|cd|sleep|type|env)\b"
)
_PLAIN = re.compile(r"(?:sed -i|rm|mv|cp|touch|mkdir|chmod|git (?:add|rm|mv)|open|code)\b")
_BUILDS = re.compile(
    r"(?:npx\s+|bunx\s+)?(?:(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:build|check|compile|typecheck|"
    r"type-check)|tsc|tsgo|vue-tsc|make(?:\s+(?:all|build))?$|cargo\s+(?:build|check)|"
    r"go\s+(?:build|vet)|mvn\s+compile|\S*gradlew?\s+build)(?![\w:-])"
)


class Command(NamedTuple):
    """One command: `where` it runs ("" when it does not say), `what` it runs, and `through` what
    its output is shown, such as ("grep error", "head -5")."""

    where: str
    what: str
    through: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The command without what it is shown through; read again, it is the same."""
        return f"cd {self.where} && {self.what}" if self.where else self.what

    @property
    def picks(self) -> bool:
        """Whether only some lines of the output are shown."""
        return any(_PICKS.match(one) for one in self.through)

    @property
    def counts(self) -> bool:
        """Whether a number is shown in place of the output."""
        return any(_COUNTS.match(one) for one in self.through)

    @property
    def seeks_trouble(self) -> bool:
        """Whether nothing shown means that nothing is wrong."""
        return any(_PICKS.match(one) and _FOR_TROUBLE.search(one) for one in self.through)


def read_command(text: str) -> Command:
    """A command without the folder it goes to, and without what its output is shown through:
    "cd app && pytest -q 2>&1 | tail -5" runs "pytest -q" in "app"."""
    line = " ".join(text[: _MOST_READ + 1].split())
    where = ""
    for _ in range(3):
        if match := _CD.match(line):
            where, line = match[1].strip("\"'").rstrip("/"), line[match.end() :]
    if match := _BEFORE.match(line):
        line = line[match.end() :]
    if len(text) > _MOST_READ or not line:
        return Command(where, line or "cd")
    line, through = _shown(line)
    while match := _JOINED.search(line[-40:]):
        line = line[: len(line[:-40]) + match.start()]
    return Command(where, line or text.strip(), through)


def _shown(line: str) -> tuple[str, tuple[str, ...]]:
    """A line of commands without the filters at its end, and those."""
    cuts = [match for match in _TOKEN.finditer(line) if match[0][0] in "|&;"]
    through: list[str] = []
    end = len(line)
    for cut in reversed(cuts):
        last = line[cut.end() : end]
        if cut[0] == "|" and _FILTER.match(last):
            through.append(_JOINED.sub("", last).strip())
        elif cut[0] == "|" or (last.strip() and (through or not _TOLD.match(last))):
            break
        end = cut.start()
    return line[:end].strip(), tuple(reversed(through))


def looks_only(what: str) -> bool:
    """Whether a command only shows something, as its first program does: what it prints is no
    error of its own, and exit 1 is "found nothing"."""
    return _LOOKS.match(what) is not None


def is_plain(what: str) -> bool:
    """Whether a command that went well says no more than the files do that it touched."""
    return looks_only(what) or _PLAIN.match(what) is not None


def builds(what: str) -> bool:
    """Whether a command compiles or checks all of a project."""
    return _BUILDS.match(what) is not None


def handled(command: str) -> Iterator[tuple[str, str]]:
    """(path, "edited" or "read" or "deleted") for the files that a command names."""
    command = command[:MOST_COMMAND]
    for match in _READ.finditer(command):
        yield match["path"], "read"
    for match in _GONE.finditer(command):
        paths = [path for word in match["paths"].split() if (path := word.strip("\"'"))]
        to = paths.pop() if match["mv"] and len(paths) > 1 else ""
        yield from ((path, "deleted") for path in paths[:200] if _is_named(path))
        if _is_named(to):
            yield to, "edited"
    for match in _EDIT.finditer(command):
        yield match["path"], "edited"


def _is_named(word: str) -> bool:
    """Whether a word of a command names a file as it stands, without a variable or a pattern."""
    return not word.startswith("-") and _AS_IT_STANDS.fullmatch(word) is not None and is_file(word)
