"""What a shell offers for `clew ask` and `clew chat`, and what `clew resume` proposes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clew

from .helpers import Demo, Run, process


def complete(line: str, **env: str) -> list[str]:
    """The words offered for the last one of a line."""
    words = str(line.count(" "))
    done = process(_CLEW_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=words, **env)
    assert done.stderr == ""
    return [entry.split(",")[1] for entry in done.stdout.split()]


def test_keys_ids_and_names(demo: Demo) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        profile.conversation("nightly", source="ask").add(clew.user("x"))
        profile.conversation("other", source="api").add(clew.user("x"))
    assert complete("clew ask --conversation ") == ["nightly"]
    assert complete("clew ask --conversation ot") == []
    assert complete(f"clew ask --resume {demo.ids.trip[:9]}") == [demo.ids.trip]
    assert complete(f"clew chat --resume {demo.ids.trip[:9]}") == [demo.ids.trip]
    assert "--max-cost" in complete("clew ask --m")


def test_models_of_the_configuration_without_asking_anybody(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        'model = "local/big"\nfallback = ["openai/gpt-5.4"]\n'
        '[providers.local]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    env = {"CLEW_CONFIG": str(config)}
    assert complete("clew ask --model ", **env) == ["local/big", "openai/gpt-5.4", "archivist"]
    assert complete("clew ask --model big", **env) == ["local/big"]
    config.write_text("model = 7")
    assert complete("clew ask --model ", **env) == ["archivist"]


def test_resume_names_the_chat_first(demo: Demo, run: Run, loads: Any) -> None:
    short = demo.ids.flaky[:8]
    shown = run("resume", short).stdout
    assert f"Go on talking:\n\n    clew chat --resume {short}\n" in shown
    assert shown.index("clew chat") < shown.index("profile.open")
    assert loads("resume", short)["command"] == f"clew chat --resume {short}"
    elsewhere = run("--store", demo.path, "resume", short).stdout
    assert f"clew --store {demo.path} chat --resume {short}" in elsewhere


@pytest.mark.parametrize("typed", ["/", "nobody/"])
def test_a_store_that_is_not_there(tmp_path: Path, typed: str) -> None:
    assert complete(f"clew --store {tmp_path}/none.db ask --conversation {typed}") == []
