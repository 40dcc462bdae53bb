"""What pyright accepts also runs."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_typed_script_runs(tmp_path: Path) -> None:
    runpy.run_path(str(Path(__file__).with_name("api.py")))["main"](tmp_path)
