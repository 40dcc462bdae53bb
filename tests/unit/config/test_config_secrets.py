"""Keys of providers: where they are looked for, and that nothing shows them.

The keyring is the real package, with a backend that keeps keys in memory, or has none.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import pytest
from keyring.backends import fail, null

from clew.config import secrets
from clew.config.secrets import Held, KeyringUnavailable, Secret, held, secret
from clew.config.values import ProviderConfig
from clew.errors import InputError

KEY = "sk-test-abcdefgh12345678"


class Memory(keyring.backend.KeyringBackend):
    """A keyring for one test."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Locked(Memory):
    """One that its owner does not unlock; its error repeats what it was given."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise keyring.errors.KeyringLocked(f"cannot store {password}")


@pytest.fixture(autouse=True)
def _back() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory() -> Memory:
    backend = Memory()
    keyring.set_keyring(backend)
    return backend


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"CLEW_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("name", "config", "variable"),
    [
        ("openai", ProviderConfig(), "OPENAI_API_KEY"),
        ("gemini", ProviderConfig(), "GOOGLE_API_KEY"),
        ("mine", ProviderConfig(key_env="MINE"), "MINE"),
        ("openai", ProviderConfig(key_env="MINE"), "MINE"),
        ("mine", ProviderConfig(kind="anthropic"), "ANTHROPIC_API_KEY"),
        ("mine", ProviderConfig(kind="openai-responses"), "OPENAI_API_KEY"),
    ],
)
def test_the_variable_of_a_provider(
    name: str, config: ProviderConfig, variable: str, env: dict[str, str]
) -> None:
    assert secret(name, config, env) is None
    assert held(name, config, env).state == "missing"
    assert secret(name, config, env | {variable: f" {KEY}\n"}) == KEY
    assert held(name, config, env | {variable: KEY}) == Held("environment", variable)


def test_a_server_of_ones_own_gets_no_other_s_key(env: dict[str, str]) -> None:
    local = ProviderConfig(base_url="http://127.0.0.1:8080/v1")
    assert secret("local", local, env | {"OPENAI_API_KEY": KEY}) is None
    assert held("local", local, env).state == held("ollama", ProviderConfig(), env).state == "none"


def test_the_keyring_is_asked_only_where_a_key_is(memory: Memory, env: dict[str, str]) -> None:
    assert secret("groq", ProviderConfig(), env) is None
    assert memory.asked == 0
    secrets.store("groq", KEY + "\n", env)
    assert memory.kept == {("clew", "groq"): KEY}
    assert secret("groq", ProviderConfig(), env) == KEY
    assert held("groq", ProviderConfig(), env) == Held("keyring")
    assert secret("groq", ProviderConfig(), env | {"GROQ_API_KEY": "first"}) == "first"
    assert KEY not in (Path(env["CLEW_HOME"]) / "keyring").read_text()
    assert secrets.remove("groq", env)
    assert not secrets.remove("groq", env)
    assert secret("groq", ProviderConfig(), env) is None
    assert memory.kept == {}


def test_a_key_that_another_program_put_there(memory: Memory, env: dict[str, str]) -> None:
    memory.kept["clew", "groq"] = KEY
    assert secret("groq", ProviderConfig(keyring=True), env) == KEY


def test_no_keyring_is_told_with_the_remedy(env: dict[str, str]) -> None:
    keyring.set_keyring(fail.Keyring())
    with pytest.raises(KeyringUnavailable, match=r"none that can be used.*GROQ_API_KEY"):
        secret("groq", ProviderConfig(keyring=True), env)


def test_a_keyring_that_keeps_nothing_is_found_out(env: dict[str, str]) -> None:
    keyring.set_keyring(null.Keyring())
    with pytest.raises(KeyringUnavailable, match="keeps nothing"):
        secrets.store("groq", KEY, env)
    assert secrets.stored(env) == frozenset()


def test_an_error_of_the_keyring_shows_no_key(env: dict[str, str]) -> None:
    keyring.set_keyring(Locked())
    with pytest.raises(KeyringUnavailable, match="KeyringLocked") as caught:
        secrets.store("groq", KEY, env)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert not (Path(env["CLEW_HOME"]) / "keyring").exists()


@pytest.mark.parametrize("text", ["", " ", "two words", "a\nb", "a\x1bb"])
def test_what_can_be_no_key_is_refused(text: str, memory: Memory, env: dict[str, str]) -> None:
    with pytest.raises(InputError, match="no key"):
        secrets.store("groq", text, env)
    with pytest.raises(InputError, match="no name"):
        secrets.store("../x", KEY, env)
    assert memory.kept == {}


def test_a_secret_is_not_shown() -> None:
    one = Secret(KEY)
    assert KEY not in f"{one} {one!r} {[one]} {one:}"
    assert one.reveal() == KEY
