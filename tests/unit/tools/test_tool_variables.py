"""Variables in the configuration of a server."""

from __future__ import annotations

import pytest

from clew.config.values import McpConfig
from clew.errors import InputError
from clew.tools.variables import expand, hide


def test_they_are_filled_in_everywhere() -> None:
    config = McpConfig(
        command="${BIN}/server", args=["--token=${TOKEN}", "$HOME ${not a name}"],
        env={"KEY": "${TOKEN}", "MODE": "${MODE:-fast}"}, cwd="${BIN}",
        url="https://${HOST:-localhost}/mcp", headers={"Authorization": "Bearer ${TOKEN}"},
    )  # fmt: skip
    found, secrets = expand("x", config, {"TOKEN": "s3cret", "BIN": "/opt"})
    assert found.command == "/opt/server"
    assert found.args == ["--token=s3cret", "$HOME ${not a name}"]
    assert found.env == {"KEY": "s3cret", "MODE": "fast"}
    assert (found.cwd, found.url) == ("/opt", "https://localhost/mcp")
    assert found.headers == {"Authorization": "Bearer s3cret"}
    assert set(secrets) == {"s3cret", "Bearer s3cret"}
    assert "s3cret" not in hide("Bearer s3cret, s3cret!", secrets)


@pytest.mark.parametrize(
    ("config", "place"),
    [
        (McpConfig(command="x", env={"KEY": "${NONE}"}), "env.KEY"),
        (McpConfig(url="x", headers={"A": "${NONE}"}), "headers.A"),
        (McpConfig(command="x", args=["a", "${NONE}"]), r"args\[1\]"),
        (McpConfig(url="${NONE}"), "url"),
    ],
)
def test_one_that_is_not_set_is_named_with_its_place(config: McpConfig, place: str) -> None:
    with pytest.raises(InputError, match=rf"mcpServers\.fs\.{place} names \$\{{NONE\}}"):
        expand("fs", config, {})


def test_an_empty_value_is_one_and_hides_nothing() -> None:
    found, secrets = expand("x", McpConfig(command="a${NONE:-}", env={"A": "1"}), {})
    assert found.command == "a"
    assert secrets == ()
