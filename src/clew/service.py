"""What the service manager that started this process is told: systemd's notification protocol.

One datagram to the socket that it named (sd_notify(3)). Without one, nothing happens; what cannot
be sent is left unsaid, because a start must not fail over it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

SOCKET, WATCHDOG, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


def tell(**fields: str | int) -> bool:
    """Send fields, such as READY=1. Whether somebody was there to take them. Never waits."""
    address = os.environ.get(SOCKET, "")
    if not address:
        return False
    socket: Any = import_module("socket")  # a command that is not a service need not load it
    if not hasattr(socket, "AF_UNIX"):
        return False
    if address.startswith("@"):  # an abstract one, which has no file
        address = "\0" + address[1:]
    text = "\n".join(f"{name}={_line(value)}" for name, value in fields.items())
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text.encode(), address)
        return True
    return False


def watchdog() -> float | None:
    """Seconds within which the manager wants a sign of life of this process; None: it does not."""
    micros, pid = os.environ.get(WATCHDOG, ""), os.environ.get(WATCHDOG_PID, "")
    if not micros.isdecimal() or int(micros) == 0 or pid not in ("", str(os.getpid())):
        return None
    return int(micros) / 1_000_000


def _line(value: str | int) -> str:
    """A line break would begin another field."""
    return str(value).replace("\n", " ")
