"""What the file system tells of changes, gathered for one who waits for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from watchfiles import watch

STEP, GATHERED = 100, 400
"""Milliseconds: quiet after which changes are handed on, and the longest that they are gathered."""


class Notices:
    """Watches folders with all that is in them, and files by the folder they are in: the notice of
    a file that is replaced by another goes to its folder."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots
        self._queue = SimpleQueue[set[str]]()
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()
        self._given: dict[Path, Path] = {}
        """Roots by their real paths, which is what some systems tell."""
        self.reason: str | None = None
        """Why some changes will not be told, if so."""

    def start(self) -> None:
        """Watch the roots as they are now; again when one of them was made anew."""
        self.close()
        self._stop = threading.Event()
        real = {root.resolve(): root for root in self._roots}
        self._given = real
        deep = sorted({path for path in real if path.is_dir()})
        flat = sorted({path.parent for path in real if path.parent.is_dir()})
        self._threads = [
            threading.Thread(target=self._run, args=(paths, recursive, self._stop), daemon=True)
            for paths, recursive in ((deep, True), (flat, False))
            if paths
        ]
        for thread in self._threads:
            thread.start()

    def take(self, seconds: float) -> set[Path]:
        """What has changed: waits so long for the first notice, then takes what is there."""
        told: set[str] = set()
        try:
            told |= self._queue.get(timeout=max(0.0, seconds))
            while True:
                told |= self._queue.get_nowait()
        except Empty:
            return {self._path(text) for text in told}

    def wake(self) -> None:
        """End a wait, from a signal handler too."""
        self._queue.put(set())

    def close(self) -> None:
        """Watch no longer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _path(self, text: str) -> Path:
        path = Path(text)
        for real, given in self._given.items():
            if real != given and path.is_relative_to(real):
                return given / path.relative_to(real)
        return path

    def _run(self, paths: list[Path], recursive: bool, stop: threading.Event) -> None:
        try:
            for changes in watch(
                *paths, watch_filter=None, debounce=GATHERED, step=STEP, stop_event=stop,
                raise_interrupt=False, recursive=recursive, ignore_permission_denied=True,
            ):  # fmt: skip
                self._queue.put({path for _, path in changes})
        except (OSError, RuntimeError) as error:  # the second is the library's own
            self.reason = f"{type(error).__name__}: {error}"
            self.wake()
