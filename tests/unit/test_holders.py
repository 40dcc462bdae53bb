"""Who holds a right, and when that process is known to be dead."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clew.store.holders import is_dead, new_holder
from clew.store.rights import is_free

CODE = "from clew.store.holders import new_holder; print(new_holder(), flush=True); input()"


def test_a_living_process_is_not_dead_and_each_holder_is_another() -> None:
    one, two = new_holder(), new_holder()
    assert one != two
    assert one.rpartition(":")[0] == two.rpartition(":")[0]
    assert not is_dead(one)


def test_a_process_that_ended_is_dead_also_before_it_is_reaped() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        holder = child.stdout.readline().strip()
        assert not is_dead(holder)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert is_dead(holder)
    assert is_dead(holder)


@pytest.mark.parametrize(
    ("field", "value", "dead"),
    [
        (0, "other-machine", False),  # the boot is this one's: the same process
        (1, "other-boot", True),  # this machine, before a restart
        (2, "other-namespace", False),  # another container: nothing can be known
        (3, "4194304999", True),  # no such process
        (3, "x", True),
        (4, "1", True),  # the same pid, another process
        (1, "?", False),
        (4, "?", False),
    ],
)
def test_dead_only_where_that_is_known(field: int, value: str, dead: bool) -> None:
    fields = new_holder().split(":")
    fields[field] = value
    assert is_dead(":".join(fields)) is dead


def test_where_machines_share_a_store_a_name_of_one_proves_nothing() -> None:
    """Two made from one image have the same; an earlier boot and a machine that runs look alike."""
    fields = new_holder().split(":")
    fields[1] = "other-boot"
    holder = ":".join(fields)
    assert is_free(holder, 100, 10, 105)
    assert not is_free(holder, 100, 10, 105, shared=True)


def test_another_machine_is_never_called_dead() -> None:
    fields = new_holder().split(":")
    fields[0], fields[1] = "other-machine", "other-boot"
    assert not is_dead(":".join(fields))


@pytest.mark.parametrize("holder", ["", "worker-1", "a:b", "1:2:3:4:5:6:7", ":::::"])
def test_a_name_that_is_no_process_does_not_die(holder: str) -> None:
    assert not is_dead(holder)


@pytest.mark.parametrize(
    ("held_at", "now", "free"),
    [
        (100, 100, False),
        (100, 109, False),
        (100, 110, True),
        (100, 91, False),
        (100, 90, True),
        (100, 10_000, True),
    ],
)
def test_a_right_is_free_by_time(held_at: int, now: int, free: bool) -> None:
    """Also when the clock has gone far back: a holder from the future would hold for ever."""
    assert is_free("worker", held_at, 10, now) is free
    assert is_free(None, None, None, now)
