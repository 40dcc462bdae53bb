"""Erasure, seen in the bytes of the files: nothing is left, whatever had been done before, and
whenever the process was killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

import clew
from clew.domain.erasure import ERASED
from clew.store import dictionary
from clew.store.needles import Needles

PROMPT = "You are an assistant for people who travel."


def token(chance: random.Random) -> str:
    """What must be found nowhere afterwards: one word."""
    return "tok" + "".join(chance.choices("abcdefghijkmnpqrstuvwxyz23456789", k=24))


def text(chance: random.Random, secret: str | None) -> str:
    words = [f"w{chance.randrange(400)}" for _ in range(chance.choice((3, 20, 120, 900)))]
    if secret is not None:
        words.insert(chance.randrange(len(words)), secret)
    return " ".join(words)


def files_with(folder: Path, tokens: list[str]) -> list[str]:
    """Files of the store that hold a token, whole or the most of it."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.is_file():
            data = path.read_bytes()
            found += [path.name for one in tokens if one[4:20].encode() in data]
    return found


def asked(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last of these statements, run behind clew's back."""
    rows: list[tuple[Any, ...]] = []
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            rows = list(cast(Any, connection).execute(statement).fetchall())
    return rows


def terms(path: Path) -> set[str]:
    """All terms of the search index."""
    vocabulary = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)"
    return {row[0] for row in asked(path, vocabulary, "SELECT term FROM temp.terms")}


def fill(profile: clew.Profile, chance: random.Random, tokens: list[str]) -> None:
    """Conversations of ann, which hold tokens everywhere, and of others, which do not."""

    def secret() -> str:
        tokens.append(token(chance))
        return tokens[-1]

    for nth in range(8):
        ann = nth % 2 == 0
        say = (lambda: text(chance, secret())) if ann else (lambda: text(chance, None))
        author = "ann" if ann else "bob"
        conv = profile.create(title=secret() if ann else "mine", prompt=PROMPT)
        for _ in range(chance.randrange(1, 6)):
            conv.append([
                clew.user(say(), author=author), clew.assistant(say()),
                clew.Draft(role=clew.Role.USER, author=author, parts=(
                    clew.Image(data=say().encode() * 20), clew.Text(say()),
                )),
            ])  # fmt: skip
        turn = conv.begin_turn(
            [clew.user(say(), author=author)], holder="h", call=clew.CallPlan(model="m")
        )
        assert isinstance(turn, clew.TurnHandle)
        turn.finish([clew.assistant(say())], deliveries=[clew.Delivery("r", {"text": say()})])
        if chance.random() < 0.7:
            attempt = conv.open_attempt()
            body = (clew.Inline(clew.Role.USER, (clew.Text(say()),)),)
            proposal = clew.Proposal(
                covers_to=2, body=body, tokens_before=9000, tokens_after=90,
                receipt={"said": say()},
            )  # fmt: skip
            conv.commit_attempt(attempt.number, proposal, summary_error=say()[:300])
        conv.set_todos([clew.Todo(say()[:200]), clew.Todo("plain")])
        conv.set_goal(say()[:200])
        conv.set_title(say()[:60], "llm")
        if chance.random() < 0.6:
            branch = conv.branch()
            branch.append([clew.user(say(), author=author)])
        if chance.random() < 0.4:
            conv.cut(conv.message(conv.info().head).uid)
        conv.set_todos([clew.Todo(say()[:200])])  # what was there before is in no row any more
    group = profile.create()
    group.append([clew.user(text(chance, secret()), author="ann"), clew.user("b", author="bob")])


def shown(profile: clew.Profile, author: str) -> list[str]:
    return [
        message.text
        for info in profile.list(limit=200).items
        for message in profile.open(info.id).messages(hidden=True)
        if message.author == author
    ]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_of_a_person_is_in_any_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tokens: list[str] = []
    with clew.open(tmp_path / "store.db") as store:
        profile = store.profile("me")
        fill(profile, chance, tokens)
        store.search_index.catch_up()
        others = shown(profile, "bob")
        assert shown(profile, "ann")
        erased = profile.erase(profile.plan_erasure(person="ann"))
        assert erased.proof.traces == ()
        assert store.verify() == []
        assert shown(profile, "ann") == []
        assert shown(profile, "bob") == others
        for info in profile.list(limit=200).items:
            assert profile.open(info.id).context("m1")
        assert not set(tokens) & terms(tmp_path / "store.db.search")
        assert files_with(tmp_path, tokens) == []
        # and the store goes on
        profile.create().append([clew.user("after")])
    assert files_with(tmp_path, tokens) == []


def test_a_dictionary_that_tells_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionary, "ENOUGH", 300)
    chance = random.Random(7)
    secret = token(chance)
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        profile = store.profile("me")
        for nth in range(16):
            author = "ann" if nth % 2 else "bob"
            said = f"my passport is {secret}, valid until May. " if nth % 2 else "a plain one. "
            profile.create().append(
                [clew.user(said + text(chance, None), author=author) for _ in range(40)]
            )
        store.maintain()
        assert secret.encode() in asked(path, "SELECT bytes FROM dictionary")[0][0]
        others = shown(profile, "bob")
        erased = profile.erase(profile.plan_erasure(person="ann"))
        assert erased.dictionary
        assert erased.proof.traces == ()
        assert shown(profile, "bob") == others
        assert store.verify() == []
    assert files_with(tmp_path, [secret]) == []


STALE = """
import sys, clew
path = sys.argv[1]
store = clew.open(path)
conv = store.profile("me").create()
conv.append([clew.user("packed with the old one " * 30)])
print(conv.id, flush=True)
sys.stdin.readline()
refused = 0
while True:
    try:
        conv.append([clew.user("packed by who has the old one " * 30, key="k")])
        break
    except clew.Busy:
        refused += 1
print(refused, flush=True)
"""


def test_i_23_a_stale_dictionary_is_refused_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that packs with a dictionary which is gone learns the new one."""
    monkeypatch.setattr(dictionary, "ENOUGH", 100)
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        profile = store.profile("me")
        own = profile.create()
        own.append(
            [clew.user(f"a very own secret of ann, {n} " * 9, author="ann") for n in range(150)]
        )
        store.maintain()
        other = subprocess.Popen(
            [sys.executable, "-c", STALE, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None
        id = other.stdout.readline().strip()
        assert profile.erase(profile.plan_erasure(person="ann")).dictionary
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline().strip() == "1"
        other.stdin.close()
        assert other.wait(20) == 0
        other.stdout.close()
        assert profile.open(id).message("k").text.startswith("packed by who")
        assert store.verify() == []


KILLED = """
import os, sys, clew
from clew.store import erasure
path, steps = sys.argv[1], int(sys.argv[2])
erasure.STEP = 7
store = clew.open(path)
backend = store._db.backend.engine
real, left = backend.write, [steps]

def write(unit):
    left[0] -= 1
    if left[0] < 0:
        def dying(tx):
            unit(tx)
            os.kill(os.getpid(), 9)  # inside the transaction
        return real(dying)
    return real(unit)

backend.write = write
profile = store.profile("me")
profile.erase(profile.plan_erasure(person="ann"))
"""


@pytest.mark.parametrize("steps", [1, 2, 6, 12])
def test_a_killed_erasure_is_gone_on_with(tmp_path: Path, steps: int) -> None:
    chance = random.Random(steps)
    tokens: list[str] = []
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        fill(store.profile("me"), chance, tokens)
        store.search_index.catch_up()
        others = shown(store.profile("me"), "bob")
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(steps)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (child.returncode, child.stderr) == (-signal.SIGKILL, "")
    with clew.open(path) as store:
        profile = store.profile("me")
        assert store.verify() == []
        store.maintain()
        if steps < 3:  # it had not been written down yet
            profile.erase(profile.plan_erasure(person="ann"))
        assert profile.plan_erasure(person="ann").is_empty
        assert shown(profile, "bob") == others
        assert store.verify() == []
        assert not set(tokens) & terms(tmp_path / "store.db.search")
    assert files_with(tmp_path, tokens) == []


WRITER = """
import sys, clew
path, id = sys.argv[1], sys.argv[2]
conv = clew.open(path).profile("me").open(id)
print("ready", flush=True)
done = 0
while done < 400:
    conv.append([clew.user(f"m{done}", author="bob", key=f"k{done}")])
    if done % 20 == 10:
        attempt = conv.open_attempt()
        body = (clew.Inline(clew.Role.USER, (clew.Text("s"),)),)
        try:
            proposal = clew.Proposal(covers_to=3, body=body, tokens_before=9000, tokens_after=9)
            conv.commit_attempt(attempt.number, proposal)
        except (clew.Cancelled, clew.InvalidCompaction):
            pass
    done += 1
print(done, flush=True)
"""


def test_appends_and_compactions_beside_it(tmp_path: Path) -> None:
    """Another process writes to the same conversation all the while: no message is lost, and no
    compaction that covers what was erased is in effect."""
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        profile = store.profile("me")
        conv = profile.create()
        secrets = [f"a secret of ann, and this is number {n}" for n in range(30)]
        conv.append([clew.user(one, author="ann") for one in secrets])
        conv.append([clew.user("b", author="bob")])
        other = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), conv.id], stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        erased = profile.erase(profile.plan_erasure(person="ann"))
        assert erased.proof.traces == ()
        done = int(other.stdout.readline())
        assert other.wait(30) == 0
        other.stdout.close()
        said = [m.text for m in conv.messages(hidden=True)]
        assert said[:30] == [ERASED] * 30
        assert [t for t in said if t.startswith("m")] == [f"m{n}" for n in range(done)]
        assert store.verify() == []
        profile.erase(profile.plan_erasure(conversations=[conv.id]))
    assert files_with(tmp_path, ["....a secret of ann, and"]) == []


def test_secure_delete_alone_leaves_bytes(tmp_path: Path) -> None:
    """Why the file is written anew: rows that moved between pages left copies."""
    path = tmp_path / "bare.db"
    chance = random.Random(3)
    asked(
        path, "PRAGMA journal_mode = WAL", "PRAGMA secure_delete = ON", "PRAGMA synchronous = OFF",
        "CREATE TABLE m(k TEXT PRIMARY KEY, b TEXT) WITHOUT ROWID",
        *(
            f"INSERT INTO m VALUES ('{chance.random()}', "
            f"'{f'SECRETPASSPORT99 {n} ' * chance.randrange(1, 30)}')"
            for n in range(3000)
        ),
        "UPDATE m SET b = 'gone'", "PRAGMA wal_checkpoint(TRUNCATE)",
    )  # fmt: skip
    before = path.read_bytes().count(b"SECRETPASSPORT99")
    asked(path, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
    assert before > 0
    assert path.read_bytes().count(b"SECRETPASSPORT99") == 0


def test_what_waits_in_the_spool_goes_too(tmp_path: Path) -> None:
    """A message that came after close waits there; it is brought in, and then erased with the rest.
    One whose conversation is not there is taken out."""
    secret = token(random.Random(5))
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        conv, lost = store.profile("me").create(), store.profile("me").create()
        conv.append([clew.user("first", author="ann")])
        handle = store.profile("me").open(lost.id)
    with clew.open(path) as store:
        store.profile("me").delete(lost.id)
    for one in (conv, handle):
        assert one.append([clew.user(f"late: {secret}", author="ann")]).spooled
    with clew.open(path) as store:
        profile = store.profile("me")
        store.bring_in()
        erased = profile.erase(profile.plan_erasure(person="ann"))
        assert erased.proof.traces == ()
        assert [m.text for m in profile.open(conv.id).messages()] == [ERASED, ERASED]
        assert store.verify() == []
    assert files_with(tmp_path, [secret]) == []


def test_a_text_too_short_for_a_piece_is_looked_for_whole(tmp_path: Path) -> None:
    """A phone number: in a row that stays it counts for nothing, in the file alone it is found."""
    needles = Needles()
    needles.add_text("+4917099988")
    needles.add_text("ok")
    assert (len(needles), needles.missed) == (1, 1)
    assert [at for at, _ in needles.find(b"x" * 20 + b"+4917099988" + b"y" * 20)] == [20]
    found = needles.with_more(Needles())
    assert (len(found), found.missed) == (1, 1)
    found.discard_in(b"call +4917099988")
    assert len(found) == 0
    with clew.open(tmp_path / "s.db") as store:
        profile = store.profile("p")
        profile.create().append([clew.user("my pin 4711", author="+4917099988")])
        erased = profile.erase(profile.plan_erasure(person="+4917099988"))
    assert erased.proof.fragments > 0
    assert erased.is_proven
