"""Files that mean harm: bounded memory and time, a skipped line or a typed error, nothing outside
the store."""

from __future__ import annotations

import base64
import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.domain.parts import Image
from clew.store.profile import Profile
from imports import SAMPLES, conversations, import_into

HERE = Path(__file__).parent
GIGABYTE = 1 << 30
MEMORY = 512
"""MiB that a process may take, with Python and clew in it."""


@pytest.fixture
def profile(tmp_path: Path) -> Iterator[Profile]:
    with clew.open(tmp_path / "store" / "s.db") as store:
        yield store.profile("p")
        assert not store.verify()


def row(n: int, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    """A record of Claude Code."""
    return {
        "type": "user", "uuid": f"u{n}", "parentUuid": parent and f"u{parent}",
        "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "isSidechain": False,
        "message": {"role": "user", "content": f"text {n}"}, **fields,
    }  # fmt: skip


def write(path: Path, *rows: bytes | dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in rows
    ))  # fmt: skip
    return path


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b"\0" * 400, b'{"type":',
        b"\xff\xfe{}", b'"text"', b"17", b"null", b"NaN", b"{}", b'{"type":null,"uuid":[]}',
        b'{"type":"user","message":{"role":"user","content":{"a":' + b"[" * 900 + b"]" * 900
        + b'}},"uuid":"x"}', b'{"a":1e999999}', b'{"a":' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_bad_line_costs_itself(line: bytes, tmp_path: Path, profile: Profile) -> None:
    path = write(tmp_path / "in" / "f.jsonl", row(1), line, row(2, 1))
    import_into(profile, path)
    (conversation,) = conversations(profile)
    texts = [m.text for m in conversation.messages()]
    assert texts[0] == "text 1"
    assert texts[-1] == "text 2"
    assert len(texts) <= 3


def test_byte_order_mark_line_ends_and_broken_text(tmp_path: Path, profile: Profile) -> None:
    rows = [json.dumps(row(1)), json.dumps(row(2, 1)).replace("text 2", "a\udc80b \\ud800 c")]
    data = b"\xef\xbb\xbf" + "\r\n".join(rows).encode("utf-8", "surrogateescape") + b"\r\n"
    path = tmp_path / "f.jsonl"
    path.write_bytes(data)
    import_into(profile, path)
    (conversation,) = conversations(profile)
    assert [m.text for m in conversation.messages()] == ["text 1", "a\ufffdb \ud800 c"]


def test_of_equal_keys_the_last_counts(tmp_path: Path, profile: Profile) -> None:
    twice = json.dumps(row(1))[:-1] + ', "uuid": "u7", "type": "user"}'
    import_into(profile, write(tmp_path / "f.jsonl", twice.encode(), row(2, 7)))
    (conversation,) = conversations(profile)
    assert [m.text for m in conversation.messages()] == ["text 1", "text 2"]


def test_parents_in_a_circle(tmp_path: Path, profile: Profile) -> None:
    rows = [row(1, 3), row(2, 1), row(3, 2), row(4, 4)]
    done = import_into(profile, write(tmp_path / "f.jsonl", *rows))
    assert done.totals.messages == 4
    chatgpt = json.loads(
        (SAMPLES / "chatgpt-export" / "chatgpt-tree-branches.json").read_text("utf-8-sig")
    )
    nodes = chatgpt[0]["mapping"]
    ids = list(nodes)
    for n, id in enumerate(ids):
        nodes[id]["parent"] = ids[(n + 1) % len(ids)]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(chatgpt))
    import_into(profile, path)


def test_ids_are_no_paths(tmp_path: Path, profile: Profile) -> None:
    evil = "../../../../tmp/evil\0\x1b[31m"
    rows = [row(n, None, sessionId=evil, cwd=evil, gitBranch=evil) for n in (1, 2)]
    rows[1] |= {"uuid": evil, "parentUuid": evil, "agentId": evil, "isSidechain": True}
    done = import_into(profile, write(tmp_path / "in" / "f.jsonl", *rows))
    assert done.totals.messages == 2
    names = {p.name for p in tmp_path.rglob("*")}
    assert names == {"in", "f.jsonl", "store", *os.listdir(tmp_path / "store")}


def test_an_image_of_text_is_no_image(tmp_path: Path, profile: Profile) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "!" * 1000}
    good = {**source, "data": base64.b64encode(b"\x89PNG").decode()}
    content = [{"type": "image", "source": each} for each in (source, good)]
    message = {"role": "user", "content": content}
    import_into(profile, write(tmp_path / "f.jsonl", row(1, message=message)))
    (conversation,) = conversations(profile)
    images = [part for part in conversation.message(1).parts if isinstance(part, Image)]
    assert [image.size for image in images] == [4]


def test_a_table_of_another_shape(tmp_path: Path, profile: Profile) -> None:
    """A database that only has the names of a format's tables."""
    import apsw  # noqa: PLC0415

    for tables in ("sessions messages", "agent_sessions agent_messages", "checkpoints writes"):
        path = tmp_path / f"{tables.split()[0]}.db"
        with apsw.Connection(str(path)) as db:
            for table in tables.split():
                db.execute(
                    f"CREATE TABLE {table}(a, b BLOB); INSERT INTO {table} VALUES (1, x'00')"
                )
        db.close()
        damaged = tmp_path / f"torn-{path.name}"
        damaged.write_bytes(path.read_bytes()[:5000])
        from clew.importers.bring import import_paths  # noqa: PLC0415

        import_paths(profile, path, damaged)
    assert [*conversations(profile)] == []


# ---------------------------------------------------------------- size

LIMITED = """
import sys
import clew
from clew.importers.bring import import_paths
with clew.open(sys.argv[1]) as store:
    done = import_paths(store.profile("p"), sys.argv[2])
print(done.totals.messages, done.totals.damaged, done.totals.failed + len(done.failed))
peak = [row for row in open("/proc/self/status") if row.startswith("VmHWM")]
print(int(peak[0].split()[1]) // 1024)
"""


def limited(tmp_path: Path, path: Path) -> tuple[int, int, int]:
    """Messages, damaged places and failures of an import by a process with little memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "s.db"), str(path)], text=True,
        capture_output=True, timeout=120, preexec_fn=limit, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    counts, memory = done.stdout.split("\n")[:2]
    assert int(memory) < MEMORY
    messages, damaged, failed = map(int, counts.split())
    return messages, damaged, failed


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux tells it")
def test_a_line_of_a_gigabyte(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", row(1))
    with path.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        stream.write(b'{"a":"')
        stream.truncate(stream.tell() + GIGABYTE)  # a hole: NUL bytes that take no space
        stream.seek(0, os.SEEK_END)
        stream.write(b'"}\n' + json.dumps(row(2, 1)).encode() + b"\n")
    assert limited(tmp_path, path) == (2, 1, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux tells it")
def test_a_bomb_in_an_archive(tmp_path: Path) -> None:
    sample = (SAMPLES / "chatgpt-export" / "chatgpt-export.json").read_text("utf-8-sig")
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("conversations.json", "w", force_zip64=True) as member:
            member.write(b'[{"id":"bomb","title":"","create_time":1,"mapping":{"a":"')
            for _ in range(GIGABYTE >> 20):
                member.write(b"a" * (1 << 20))
            member.write(b'"}},' + sample.strip()[1:].encode())
        with archive.open("other.json", "w", force_zip64=True) as member:
            member.write(b'{"schema_version":"ATIF-v1.7","session_id":"x","steps":["')
            for _ in range(GIGABYTE >> 20):
                member.write(b"a" * (1 << 20))
    messages, damaged, failed = limited(tmp_path, path)
    assert messages == 19
    assert damaged + failed >= 1
