"""Shared by all tests: Hypothesis profiles and a directory in memory where there is one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHM = Path("/dev/shm")

if "CLEW_HOME" not in os.environ:
    os.environ["CLEW_HOME"] = tempfile.mkdtemp(prefix="clew-home-")
    atexit.register(shutil.rmtree, os.environ["CLEW_HOME"], ignore_errors=True)
"""Spools of stores on servers are there, and not among those of whoever runs the tests."""

_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "usual", max_examples=25, deadline=None, suppress_health_check=_SLOW, derandomize=True
)
settings.register_profile(
    "explore", max_examples=300, deadline=None, suppress_health_check=_SLOW, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
"""A usual run is the same every time: it tells what a change broke. To search for faults that were
there before is another run, `explore`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz", type=float, default=None, metavar="SECONDS",
        help="search for new faults of each format for so long, at random",
    )  # fmt: skip
    parser.addoption(
        "--fuzz-seed", default=None, metavar="SEED[:TURN]",
        help="what a failed fuzz test named: all turns up to that one again",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires(*features): only on backends that provide these")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Of `-n auto`, which is the default: one for each core in a run of everything, none where
    somebody names tests. A worker takes longer to start than a file of tests to run."""
    return 0 if _names_tests(config) else os.cpu_count() or 1


def _names_tests(config: pytest.Config) -> bool:
    return any(Path(arg.split("::")[0]).exists() for arg in config.invocation_params.args)


@pytest.fixture
def fast_dir() -> Iterator[Path]:
    """An empty directory, in memory if possible: a sync costs nothing there."""
    path = Path(tempfile.mkdtemp(prefix="clew-", dir=SHM if SHM.is_dir() else None))
    yield path
    shutil.rmtree(path)
