"""What ${NAME} stands for."""

from __future__ import annotations

import pytest

from clew.config.references import filled, unset
from clew.config.values import Config, McpConfig, ProviderConfig
from clew.errors import InputError


def test_headers_are_filled() -> None:
    provider = ProviderConfig(headers={"a": "Bearer ${A}", "b": "${B:-c}-${A}", "c": "$A ${}"})
    assert filled("x", provider, {"A": "1"}).headers == {"a": "Bearer 1", "b": "c-1", "c": "$A ${}"}
    assert filled("x", provider, {"A": r"\1", "B": ""}).headers["b"] == "-\\1"
    with pytest.raises(InputError, match=r"providers\.x\.headers\.a names \$\{A\}"):
        filled("x", provider, {"B": "1"})


def test_what_is_not_set_is_found() -> None:
    config = Config(
        providers={"p": ProviderConfig(headers={"h": "${ONE}"})},
        mcpServers={
            "s": McpConfig(
                command="${TWO}", args=["a", "${THREE:-x} ${FOUR}"], env={"E": "${ONE}"}
            ),
            "off": McpConfig(command="${FIVE}", enabled=False),
        },
    )
    assert [*unset(config, {"TWO": ""})] == [
        (("providers", "p", "headers", "h"), "ONE"), (("mcpServers", "s", "args", 1), "FOUR"),
        (("mcpServers", "s", "env", "E"), "ONE"),
    ]  # fmt: skip


def test_no_repr_shows_what_may_be_a_key() -> None:
    key = "hunter2hunter2"
    config = Config(
        providers={"p": ProviderConfig(headers={"h": key})},
        mcpServers={
            "s": McpConfig(command="x", args=[key], env={"E": key}),
            "t": McpConfig(url=f"https://me:{key}@h/mcp?token={key}", headers={"h": key}),
        },
    )
    assert key not in repr(config) + str(config)
    assert "'E'" in repr(config)
