"""Scheduled backups: made once, tested by a restore, told by the doctor, harmless when killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
import clew.aio
from clew.config.values import BackupConfig, ChatConfig, Config
from clew.errors import Corrupt, InputError
from clew.host.backups import back_up
from clew.store import doctor_backup
from clew.store.address import parse
from clew.store.backup_chain import extract, find, points
from clew.store.findings import Finding
from clew.store.scheduled import Schedule, last, run_for, schedule_of
from clew.testing.clock import FakeClock
from integration.hosting import ScriptedProvider, hosted, until
from servers import server

HOUR = 3_600_000_000
DAY = 24 * HOUR
WORKER = """
import os, signal, sys
import clew
from pathlib import Path
from clew.store.scheduled import Schedule, run_for
store, folder, kill_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
calls = 0
def progress(done, of):
    global calls
    calls += 1
    if calls == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.readline()
with clew.open(store) as opened:
    print(run_for(opened, Schedule(folder, 86_400_000_000, 3), progress) is not None, calls)
"""


class Place:
    """A store, its clock and its schedule."""

    def __init__(self, folder: Path) -> None:
        self.path, self.clock = folder / "a.db", FakeClock()
        self.schedule = Schedule(folder / "backups", DAY, 3)
        self.chain = self.schedule.place(self.path)
        self.store = clew.open(self.path, clock=self.clock)
        self.say("one")

    def say(self, text: str) -> None:
        self.store.profile("me").conversation("k").add(clew.user(text))

    def run(self) -> bool:
        return run_for(self.store, self.schedule) is not None

    def doctor(self) -> list[tuple[str, str]]:
        found = doctor_backup.look(self.path, self.schedule, self.clock.now())
        return [(finding.code, finding.level) for finding in found]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    with made.store:
        yield made


def test_a_point_is_made_tested_and_noted(place: Place, tmp_path: Path) -> None:
    assert place.doctor() == [("backup.missing", "warn")]
    assert place.run()
    result = last(place.chain)
    assert result is not None
    assert result.error is None
    point = find(place.chain, result.good_point)
    extract(place.chain, point, tmp_path / "back.db")
    with clew.open(tmp_path / "back.db") as back:
        assert [m.text for m in back.profile("me").conversation("k").messages()] == ["one"]
    assert place.doctor() == [("backup.good", "ok")]
    assert (place.chain.stat().st_mode | place.chain.parent.stat().st_mode) & 0o077 == 0


def test_a_daily_timer_makes_one_each_day(place: Place) -> None:
    """What was made some minutes after the hour is old enough at the next one."""
    assert [place.run(), place.run()] == [True, False]
    place.clock.advance(DAY - HOUR)
    assert place.run()
    place.clock.advance(12 * HOUR)
    assert not place.run()
    for _ in range(4):
        place.clock.advance(DAY)
        assert place.run()
    assert len(points(place.chain)) == place.schedule.keep


def test_processes_that_look_at_once_make_one(place: Place) -> None:
    """The claim of the job is one transaction: who comes second finds it taken, or done."""
    workers = [worker(place) for _ in range(3)]
    said = [each.communicate(b"\n", timeout=60)[0].split()[0] for each in workers]
    assert sorted(said) == [b"False", b"False", b"True"]
    assert len(points(place.chain)) == 1


def worker(place: Place, kill_at: int = 0) -> subprocess.Popen[bytes]:
    folder = place.schedule.folder
    command = [sys.executable, "-c", WORKER, str(place.path), str(folder), str(kill_at)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_run_that_is_killed_leaves_nothing_half_written(place: Place) -> None:
    """While it copies, reads back and restores; the next run is due at once, and sweeps."""
    place.run()
    before = last(place.chain)
    place.clock.advance(10 * DAY)  # the workers' clock is the system's, and far from this one
    killed = 0
    for kill_at in range(1, 50):
        one = worker(place, kill_at)
        one.communicate(b"\n", timeout=60)
        if one.returncode != -signal.SIGKILL:
            break
        killed += 1
        assert last(place.chain) == before
        for point in points(place.chain):
            extract(place.chain, point, place.path.with_name("x.db"))
            os.unlink(place.path.with_name("x.db"))
    assert killed >= 3
    assert last(place.chain) != before
    names = {path.name for path in place.chain.iterdir()}
    assert not [name for name in names if name.startswith(".")]


def test_a_failure_is_told_and_due_again(place: Place) -> None:
    place.run()
    (pack,) = (place.chain / "packs").glob("*.pack")
    whole = pack.read_bytes()
    pack.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    place.clock.advance(DAY)
    with pytest.raises(Corrupt):
        place.run()
    assert place.doctor() == [("backup.failed", "error")]
    place.clock.advance(2 * DAY)
    assert place.doctor() == [("backup.failed", "error"), ("backup.old", "warn")]
    pack.write_bytes(whole)
    assert place.run()
    assert place.doctor() == [("backup.good", "ok")]


def test_the_doctor_tells_age_and_loss(place: Place) -> None:
    place.run()
    place.clock.advance(2 * DAY + 1)
    assert place.doctor() == [("backup.old", "warn")]
    for path in place.chain.glob("*.point"):
        path.unlink()
    assert place.doctor() == [("backup.lost", "error")]
    (place.chain / "scheduled.json").write_bytes(b"{")
    assert place.doctor() == [("backup.unreadable", "error")]


def test_a_disk_that_is_not_mounted_is_not_made_up_for(place: Place, tmp_path: Path) -> None:
    place.schedule = Schedule(tmp_path / "disk" / "backups", DAY, 3)
    with pytest.raises(InputError, match="mount its disk"):
        place.run()
    assert not (tmp_path / "disk").exists()
    assert place.doctor() == [("backup.folder", "error")]


def test_a_folder_of_other_files_is_left_alone(place: Place) -> None:
    place.chain.mkdir(parents=True)
    (place.chain / "mine").write_text("x")
    with pytest.raises(InputError, match="holds other files"):
        place.run()
    assert [path.name for path in place.chain.iterdir()] == ["mine"]
    assert place.doctor() == [("backup.missing", "warn")]


def test_a_store_on_a_server_is_left_to_its_tools(tmp_path: Path) -> None:
    url = server().create_database()
    schedule = Schedule(tmp_path / "backups", DAY, 3)
    with clew.open(url) as store, pytest.raises(InputError, match="server's tools"):
        run_for(store, schedule)
    address = parse(url)

    def told(wanted: Schedule | None) -> list[Finding]:
        return list(doctor_backup.look(address, wanted, 0))

    assert [(f.code, f.level) for f in told(schedule)] == [("backup.server", "warn")]
    assert [(f.code, f.level) for f in told(None)] == [("backup.server", "ok")]
    assert not (tmp_path / "backups").exists()


def test_what_the_configuration_says() -> None:
    assert schedule_of(BackupConfig()) is None
    wanted = schedule_of(BackupConfig(folder="/b", every="12h", keep=2))
    assert wanted == Schedule(Path("/b"), 12 * HOUR, 2)


def test_a_host_backs_up_beside_its_turns(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.db", tmp_path / "backups"
    config = Config(chat=ChatConfig(titles=False), backup=BackupConfig(folder=str(folder)))
    chain = Schedule(folder, DAY, 14).place(path)

    async def scene() -> None:
        async with hosted(path, ScriptedProvider("hello"), config=config) as (host, _):
            await host.say(await host.new("chat"), [clew.user("hi")])
            await until(lambda: chain.exists() and last(chain) is not None)

    asyncio.run(scene())
    result = last(chain)
    assert result is not None
    assert result.error is None


def test_a_host_that_closes_ends_it(tmp_path: Path) -> None:
    """`going` is asked while pages are copied: the run ends there, neither good nor bad."""
    schedule = Schedule(tmp_path / "backups", DAY, 3)
    chain, asked = schedule.place(tmp_path / "a.db"), iter((True, False))

    async def scene() -> None:
        async with clew.aio.open(tmp_path / "a.db") as store:
            profile = store.profile("me")
            await (await profile.create()).add(clew.user("hi"))
            ended = back_up(profile, schedule, lambda: next(asked))
            assert await asyncio.wait_for(ended, 30) is None
            assert (last(chain), points(chain)) == (None, [])
            assert await back_up(profile, schedule, lambda: True) is not None

    asyncio.run(scene())
