"""Which store and which profile: option, environment, file, default."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.config import ConfigError, config_path, default_profile, default_store, load
from clew.config.place import plainly_named
from clew.config.quick import named


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLEW_STORE", "CLEW_PROFILE", "CLEW_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLEW_HOME", str(tmp_path))
    return tmp_path


def test_the_environment_is_over_the_file_over_the_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (default_store(), default_profile()) == (str(home / "clew.db"), "default")
    (home / "config.toml").write_text('store = "sub/talks.db" # here\nprofile = "bot"\n')
    assert (default_store(), default_profile()) == (str(home / "sub" / "talks.db"), "bot")
    monkeypatch.setenv("CLEW_STORE", "other.db")
    monkeypatch.setenv("CLEW_PROFILE", "me")
    assert (default_store(), default_profile()) == ("other.db", "me")


def test_a_change_of_the_file_is_seen(home: Path) -> None:
    for name in ("first", "second one"):
        (home / "config.toml").write_text(f"profile = '{name}'")
        assert default_profile() == name


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("store = '~/x.db'", "~/x.db"),
        ("store = '/abs/x.db'", "/abs/x.db"),
        ('store = "postgresql://me@db/clew"', "postgresql://me@db/clew"),
        ('"\\u0073tore" = """/a\\\n b"""', "/ab"),
        ('system = """\n[x]\n"""\nstore = "/late"', "/late"),
        ('a = ["[",\n"b"]\nstore = "/late"', "/late"),
        ('[x]\nstore = "/not"', None),
        ('system = """\nstore = "/not"\n"""', None),
        ("# store = '/not'", None),
        ("store = ''", None),
    ],
)
def test_the_store_that_a_file_names(home: Path, text: str, wanted: str | None) -> None:
    (home / "config.toml").write_text(text)
    assert default_store() == (wanted or str(home / "clew.db"))


@pytest.mark.parametrize(
    "text",
    ["store = 5", "store = 'postgresql://me:secret@db/x'", "store = 'a", "profile = ['x']",
     "store = 'a'\nstore = 'b'"],
)  # fmt: skip
def test_a_file_that_may_name_another_store_is_not_passed_over(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.toml:\d") as caught:
        default_store()
    assert "secret@" not in str(caught.value)


def test_what_is_wrong_elsewhere_is_for_those_who_ask(home: Path) -> None:
    (home / "config.toml").write_text("store = '/x'\nnothing = 1\n[limits]\nsteps = 'a'\n")
    assert default_store() == "/x"
    with pytest.raises(ConfigError):
        load()


def test_a_folder_in_the_place_of_the_file(home: Path) -> None:
    (home / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        default_store()


LINES = st.sampled_from([
    "", "# c", "model = 'a' # x", 'store = "s"', "store='t'", "profile = 'p'", "steps = 5", "[x]",
    'system = """', '"""', "a = [", "]", "'q' = 1", "a.b = 2", 'store = "a\\\\b"', "x = 1.5e3",
    "y = '''", "'''", "d = 2026-01-01", "z = {a = 1}", "store", "= 1", 'profile = "q" junk',
])  # fmt: skip


@given(st.lists(LINES, max_size=6))
@example(["store = 's'", "a = ["])
def test_the_short_way_says_what_the_long_one_says(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Or nothing; of a file that is no TOML it may say what its valid beginning says."""
    text = "\n".join(lines)
    short = plainly_named(text.encode())
    path = tmp_path_factory.mktemp("c") / "config.toml"
    path.write_text(text)
    try:
        long = named(path)
    except ConfigError:
        return
    assert short in (None, long)


def test_a_plain_file_loads_no_parser(home: Path) -> None:
    """`clew list` reads it each time; a TOML parser takes longer than the listing."""
    (home / "config.toml").write_text('store = "x.db"\nmodel = "openai/m"\n[limits]\nsteps = 5\n')
    code = (
        "import sys\nfrom clew.config import default_store, default_profile\n"
        "print(default_store(), default_profile(), 'tomllib' in sys.modules, "
        "'clew.config.loading' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert ran.stdout.split() == [str(home / "x.db"), "default", "False", "False"]


def test_where_the_file_is(home: Path) -> None:
    assert config_path() == home / "config.toml"
    assert config_path({"CLEW_CONFIG": "~/c.toml"}) == Path.home() / "c.toml"
    assert config_path({}) == Path.home() / ".clew" / "config.toml"
