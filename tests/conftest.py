"""Shared by all tests: Hypothesis profiles and a directory in memory where there is one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHM = Path("/dev/shm")

_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("ci", max_examples=300, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz", type=float, default=5, metavar="SECONDS", help="how long to fuzz each format"
    )
    parser.addoption(
        "--fuzz-seed", default=None, metavar="SEED", help="what a failed fuzz test named"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires(*features): only on backends that provide these")


@pytest.fixture
def fast_dir() -> Iterator[Path]:
    """An empty directory, in memory if possible: a sync costs nothing there."""
    path = Path(tempfile.mkdtemp(prefix="clew-", dir=SHM if SHM.is_dir() else None))
    yield path
    shutil.rmtree(path)
