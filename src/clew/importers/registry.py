"""All formats that are read."""

from __future__ import annotations

from clew.importers.format import Format
from clew.importers.formats import (
    atif,
    chatgpt,
    claude_code,
    codex,
    codex_exec,
    gemini_cli,
    goose,
    hermes_json,
    hermes_state,
    langgraph,
    librechat,
    mini_swe_agent,
    open_webui,
    openai_agents,
    openai_chat,
    openai_responses,
    opencode,
    openhands,
    pi,
    swe_agent,
)
from clew.importers.probe import Probe

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT,
    codex.FORMAT,
    codex_exec.FORMAT,
    pi.FORMAT,
    goose.FORMAT,
    gemini_cli.FORMAT,
    opencode.FORMAT,
    openhands.FORMAT,
    hermes_json.FORMAT,
    hermes_state.FORMAT,
    langgraph.FORMAT,
    openai_agents.FORMAT,
    chatgpt.FORMAT,
    librechat.FORMAT,
    open_webui.FORMAT,
    atif.FORMAT,
    swe_agent.FORMAT,
    mini_swe_agent.FORMAT,
    openai_responses.FORMAT,
    openai_chat.FORMAT,
)
"""The more telling ones first: a file that two take for theirs (nobody wrote such a file so far) is
of a tool before it is of an API that many tools speak."""


def format_of(probe: Probe) -> Format | None:
    """The format of a source, by its content."""
    return next((each for each in FORMATS if each.matches(probe)), None)
