"""What is taken for a key, by its form and by the name of what holds it."""

from __future__ import annotations

import pytest

from clew.config.keylike import has_key, is_key, names_key, shown_name

TAIL = "a1B2c3D4e5F6g7H8i9J0k1L2"
FORMS = [
    f"sk-{TAIL}", f"sk-proj-{TAIL}", f"sk-ant-api03-{TAIL}", f"sk-or-v1-{TAIL}", f"pk-{TAIL}",
    f"rk-{TAIL}", f"ghp_{TAIL}", f"gho_{TAIL}", f"github_pat_{TAIL}", f"glpat-{TAIL}",
    f"xai-{TAIL}", f"gsk_{TAIL}", f"AIza{TAIL}", f"hf_{TAIL}", "AKIAABCDEFGH12345678",
    "ASIAABCDEFGH12345678", f"xoxb-{TAIL}", f"r8_{TAIL}", f"pplx-{TAIL}", f"nvapi-{TAIL}",
    f"eyJ{TAIL}.eyJ{TAIL}.x", "-----BEGIN RSA PRIVATE KEY-----", f"Bearer {TAIL}",
    f"basic {TAIL}", f"BEARER {TAIL}", f"https://h/?token={TAIL}", f"https://h/?a=b&API_KEY={TAIL}",
    "postgresql://me:hunter2@db/x", "https://:secret@h/",
]  # fmt: skip


@pytest.mark.parametrize("key", FORMS)
def test_forms_of_keys(key: str) -> None:
    """Alone, and within a text."""
    assert has_key(key)
    assert has_key(f"--with {key} and more")
    assert shown_name(key) == "***"


@pytest.mark.parametrize(
    "text",
    ["", "gpt-5", "openai/gpt-5.4-mini", "https://h:8080/v1?a=b", "Bearer ${TOKEN}", "sk-${KEY}",
     "postgresql://me@db/x", "a basic understanding", "the bearer authentication",
     "task-1234567890", "postgresql://me:${PASSWORD}@db/x", "?key=${KEY_OF_MINE}", "sk-short1"],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    assert not has_key(text)


@pytest.mark.parametrize("name", ["api_key", "apiKey", "x-api-key", "GITHUB_TOKEN", "Authorization",
                                  "password", "db.password", "clientSecret"])  # fmt: skip
def test_names_of_keys(name: str) -> None:
    assert names_key(name)
    assert is_key(name, "abcdefgh")
    assert not is_key(name, "${ABCDEFGH}")
    assert not is_key(name, "false")


@pytest.mark.parametrize(
    "name", ["max_tokens", "TOKENIZERS_PARALLELISM", "keyboard", "monkey", "a"]
)
def test_names_of_other_things(name: str) -> None:
    assert not names_key(name)
