"""What is written to logs while a host works: nothing of what is said, and no key."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from hosting import Made
from serving import APIS, KEY, configured, served

import clew
from clew.config.values import Kind
from clew.providers.errors import ProviderError
from provider_server import ProviderServer, call, say, use
from provider_server.failures import Failure

SAID = ("word-of-mine", "word-of-the-model", "word-of-an-argument", "word-of-a-result")


@pytest.mark.parametrize("api", APIS)
def test_a_turn_leaves_no_content_in_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, api: Kind
) -> None:
    """All loggers at DEBUG, those of clients and drivers too: a turn that goes well, and one that
    is refused."""
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        with ProviderServer() as server:
            server.script = [
                use(call("look", {"at": SAID[2]}, "a")), say(SAID[1]),
                Failure(400, {"error": {"message": f"{KEY} sent {SAID[0]}"}}),
            ]  # fmt: skip
            look = Made("look", lambda _: SAID[3])
            async with served(tmp_path / "store.db", configured(server, api=api), look) as (
                host,
                _,
            ):
                conv = await host.new("chat")
                report = await host.say(conv, [clew.user(SAID[0], key=SAID[0])])
                assert report.text == SAID[1]
                with pytest.raises(ProviderError):
                    await host.say(conv, [clew.user(SAID[0])])

    asyncio.run(main())
    lines = [f"{record.name}: {record.getMessage()} {record.exc_text}" for record in caplog.records]
    assert lines  # something was logged
    for said in (*SAID, KEY):
        assert not [line for line in lines if said in line], said
