"""What the configuration file may say, as values; docs/reference/configuration.md explains each.

Pure: reading files, environment and keyring is the work of the modules beside this one. Every field
has a default, so that an empty file, or none, is a valid one.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["openai", "openai-responses", "anthropic", "archivist"]


class ProviderConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME]`: a place where models answer."""

    kind: Kind = "openai"
    """`openai`: Chat Completions of any server; `openai-responses`; `anthropic`."""
    base_url: str | None = None
    key_env: str | None = None
    """Name of the environment variable that holds the key."""
    keyring: bool = False
    """The key is in the system's keyring, under service "clew" and this provider's name."""
    headers: dict[str, str] = {}
    timeout: float = 120.0
    """Seconds without a byte after which a call is given up."""
    affinity: bool = True
    """Send the conversation's cache scope, where the API knows one."""
    affinity_header: str | None = None
    """A header that takes the scope, such as x-session-id or x-grok-conv-id."""

    def __repr__(self) -> str:
        """Without the values of headers, which may be keys."""
        return (
            f"ProviderConfig(kind={self.kind!r}, base_url={self.base_url!r}, "
            f"key_env={self.key_env!r}, keyring={self.keyring}, headers={[*self.headers]})"
        )


class PriceConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None


class ModelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[models."PROVIDER/NAME"]`: what is known better here than in the shipped data."""

    window: int | None = None
    reply: int | None = None
    price: PriceConfig | None = None
    tools: bool | None = None
    images: bool | None = None
    settings: dict[str, Any] = {}
    """Sent with each request: temperature, reasoning_effort, ..."""


class LimitsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: where a turn is stopped. 0: no limit."""

    steps: int = 100
    """Model calls of one turn."""
    turn_tokens: int = 0
    turn_cost: float = 0.0
    day_tokens: int = 0
    day_cost: float = 0.0
    """Of all conversations of the profile since midnight, local time."""
    repeats: int = 3
    """The same call with the same result so often in a row ends the turn."""
    retries: int = 5
    """Tries of one model call before the next model of the fallback list."""


class McpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[mcpServers.NAME]`, as other MCP clients have it: a command, or a url."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    enabled: bool = True
    timeout: float = 60.0

    def __repr__(self) -> str:
        """Without what may be a key: an mcp.json of another program has them in any of these."""
        place = None if self.url is None else self.url.partition("?")[0].rpartition("@")[2]
        return (
            f"McpConfig(command={self.command!r}, url={place!r}, args={len(self.args)}, "
            f"env={[*self.env]}, headers={[*self.headers]}, enabled={self.enabled})"
        )


class ToolsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tools]`."""

    timeout: float = 120.0
    """Seconds that a call may take."""
    output: int = 30_000
    """Characters of a result that the model is shown; the whole is stored."""
    builtin: bool = True
    """Offer recall, search, todo and goal."""
    policy: dict[str, Literal["allow", "ask", "deny"]] = {}
    """By the name of a tool, or "SERVER.*"."""


class CompactionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[compaction]`."""

    high: float = 0.78
    low: float = 0.38
    model: str | None = None
    """PROVIDER/NAME of the model that writes narratives; None: the ledger alone."""


class ChatConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[chat]`."""

    busy: Literal["steer", "queue"] = "steer"
    """What becomes of a message typed while a turn runs."""
    titles: bool = True
    """Let the model give titles."""
    reasoning: bool = False
    """Show the model's thinking."""
    vi: bool = False
    """Keys of vi."""
    recovery: Literal["resume", "close"] = "resume"
    """Of a turn that a crash interrupted: go on, or close it as interrupted."""


class RetentionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[retention]`: what goes by itself. An age such as 90d, or keep."""

    auto: bool = True
    """Once a day. Without, nothing goes but by `clew prune`."""
    automation: str = "90d"
    """Of what machines made, without activity: closed then, in the bin after as long again."""
    people: str = "keep"
    imports: str = "keep"
    bin: str = "30d"
    """How long what is in the bin can be restored."""
    sources: dict[str, str] = {}
    """By source, before the others."""


class BackupConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[backup]`: points of the store that are made and tested by themselves."""

    folder: str | None = None
    """Where they go; None: nothing is backed up by itself."""
    every: str = "1d"
    keep: int = 14
    """Points."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    model: str | None = None
    """PROVIDER/NAME; None: the first provider that can be used, or the archivist."""
    fallback: list[str] = []
    """Models that are asked when the first fails."""
    system: str | None = None
    """The system prompt of new conversations."""
    store: str | None = None
    profile: str | None = None
    providers: dict[str, ProviderConfig] = {}
    models: dict[str, ModelConfig] = {}
    limits: LimitsConfig = LimitsConfig()
    tools: ToolsConfig = ToolsConfig()
    mcpServers: dict[str, McpConfig] = {}
    """By the name that all MCP clients give to this table."""
    compaction: CompactionConfig = CompactionConfig()
    chat: ChatConfig = ChatConfig()
    retention: RetentionConfig = RetentionConfig()
    backup: BackupConfig = BackupConfig()
