"""What a value must be beyond its type: ranges, names that exist, things that go together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os.path import expanduser, isabs
from urllib.parse import urlsplit

from clew.config.ages import micros
from clew.config.keylike import has_key
from clew.config.known import KNOWN
from clew.config.nearest import meant
from clew.config.scan import Key
from clew.config.shape import Say
from clew.config.values import Config, McpConfig, ModelConfig, ProviderConfig

MOST = 1 << 53
LONGEST = 86_400.0
"""Seconds of a timeout: a day."""
SMALLEST_WINDOW = 1_000
"""As context.Budget wants it."""
RESERVED = (
    "model", "messages", "input", "instructions", "system", "tools", "stream", "stream_options",
)  # fmt: skip
"""What `settings` of a model may not name: it is made of the conversation."""
FREED = 0.25
"""Share of `high` that a compaction must free, as context.Budget wants it."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)
_PROVIDER = re.compile(r"[\w.-]{1,40}", re.ASCII)


def judge(config: Config, say: Say) -> None:
    """Say all that is wrong with the values of a configuration."""
    _models(config, say)
    for name, provider in config.providers.items():
        _provider(("providers", name), provider, say)
    for name, model in config.models.items():
        _model(("models", name), model, say)
    for name, server in config.mcpServers.items():
        _server(("mcpServers", name), server, say)
    _limits(config, say)
    _tools(config, say)
    _shares(config, say)
    _retention(config, say)
    _backup(config, say)


def _models(config: Config, say: Say) -> None:
    """Each model that is named is PROVIDER/NAME, of a provider that there is."""
    known = {*KNOWN, *config.providers}
    for key, name in _named(config):
        provider, slash, model = name.partition("/")
        if provider in known and (model or (not slash and _is_archivist(config, provider))):
            continue
        if not slash:
            say(key, "names no provider; write PROVIDER/NAME, such as openai/gpt-5")
        elif provider in known:
            say(key, "names no model; write PROVIDER/NAME, such as openai/gpt-5")
        else:
            shown = repr(provider) if _may_show(provider) else "that"
            hint = f"{meant(provider, known)}; [providers.NAME] makes another"
            say(key, f"there is no provider {shown}; {hint}")


def _named(config: Config) -> Iterable[tuple[Key, str]]:
    if config.model is not None:
        yield ("model",), config.model
    yield from ((("fallback", at), name) for at, name in enumerate(config.fallback))
    yield from ((("models", name), name) for name in config.models)
    if config.compaction.model is not None:
        yield ("compaction", "model"), config.compaction.model


def _is_archivist(config: Config, provider: str) -> bool:
    """It has one model only."""
    made = config.providers.get(provider)
    kind = made.kind if made else KNOWN[provider].kind
    return kind == "archivist"


def _may_show(name: str) -> bool:
    return bool(_PROVIDER.fullmatch(name)) and not has_key(name)


def _provider(at: Key, provider: ProviderConfig, say: Say) -> None:
    name = str(at[-1])
    if not _may_show(name):
        say(at, "is no name of a provider; use letters, digits, '-', '_' and '.', at most 40")
    _url((*at, "base_url"), provider.base_url, say)
    if provider.key_env is not None and not _VARIABLE.fullmatch(provider.key_env):
        say((*at, "key_env"), "is no name of an environment variable; put the key into a variable "
            "and give its name, such as OPENAI_API_KEY")  # fmt: skip
    _timeout((*at, "timeout"), provider.timeout, say)
    _headers((*at, "headers"), provider.headers, say)
    if provider.affinity_header is not None and not _TOKEN.fullmatch(provider.affinity_header):
        say((*at, "affinity_header"), "is no name of an HTTP header, such as x-session-id")


def _url(at: Key, url: str | None, say: Say) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or any(sign.isspace() for sign in url):
        say(at, "is no URL; give http://HOST:PORT/PATH or https://...")


def _headers(at: Key, headers: dict[str, str], say: Say) -> None:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            say((*at, name), "is no name of an HTTP header")
        if any(ord(sign) < 32 and sign != "\t" for sign in value):
            say((*at, name), "has a line break or control character, which no header may")


def _model(at: Key, model: ModelConfig, say: Say) -> None:
    if model.window is not None:
        _range((*at, "window"), model.window, SMALLEST_WINDOW, 1 << 40, "tokens", say)
    most = (model.window or 1 << 40) // 2
    if model.reply is not None:
        _range((*at, "reply"), model.reply, 1, max(1, most), "tokens, half of the window", say)
    if model.price is not None:
        for name in ("input", "output", "cached"):
            value: float | None = getattr(model.price, name)
            if value is not None:
                _range((*at, "price", name), value, 0, 1e6, "dollars for a million tokens", say)
    for name in model.settings:
        if name in RESERVED:
            say((*at, "settings", name), "is made of the conversation; take it out")


def _server(at: Key, server: McpConfig, say: Say) -> None:
    if (server.command is None) == (server.url is None):
        have = "neither" if server.command is None else "both"
        say(at, f"has {have} of command and url; give one: a program, or where the server is")
    if server.command is not None and not server.command.strip():
        say((*at, "command"), "is empty; name the program that is the server")
    if server.url is not None and not server.url.startswith("${"):
        _url((*at, "url"), server.url, say)
    _headers((*at, "headers"), server.headers, say)
    _timeout((*at, "timeout"), server.timeout, say)


def _limits(config: Config, say: Say) -> None:
    limits = config.limits
    for name in ("steps", "turn_tokens", "day_tokens", "repeats"):
        _range(("limits", name), getattr(limits, name), 0, MOST, "(0: no limit)", say)
    for name in ("turn_cost", "day_cost"):
        _range(("limits", name), getattr(limits, name), 0, 1e9, "dollars (0: no limit)", say)
    _range(("limits", "retries"), limits.retries, 0, 100, "tries", say)


def _tools(config: Config, say: Say) -> None:
    _timeout(("tools", "timeout"), config.tools.timeout, say)
    _range(("tools", "output"), config.tools.output, 100, 1 << 30, "characters", say)
    for name in config.tools.policy:
        if not name.strip():
            say(("tools", "policy", name), 'is no name of a tool, and no "SERVER.*"')


def _shares(config: Config, say: Say) -> None:
    """As context.Budget wants them: it refuses others when a conversation is opened."""
    high, low = config.compaction.high, config.compaction.low
    fine = True
    for name, value in (("high", high), ("low", low)):
        if not 0 < value <= 1:
            fine = False
            say(("compaction", name), f"is {value:g}; give a share of the window, over 0 and at "
                "most 1")  # fmt: skip
    most = high * (1 - FREED)
    if fine and low > most:
        say(("compaction", "low"), f"is {low:g} and high is {high:g}: a compaction would free less "
            f"than a quarter; give a low of at most {most:.2f}")  # fmt: skip


def _retention(config: Config, say: Say) -> None:
    wanted = config.retention
    ages = {("automation",): wanted.automation, ("people",): wanted.people,
            ("imports",): wanted.imports, ("bin",): wanted.bin}  # fmt: skip
    ages |= {("sources", name): age for name, age in wanted.sources.items()}
    for key, age in ages.items():
        at = ("retention", *key)
        try:
            kept = micros(age) is None
        except ValueError:
            say(at, "is no age; give one over 0 and at most 100 years, such as 90d, 12w, 24h or 2y"
                + ("" if key == ("bin",) else ", or keep"))  # fmt: skip
            continue
        if kept and key == ("bin",):
            say(at, "cannot be kept for ever; give an age, such as 30d")
    for name in wanted.sources:
        if not name.strip():
            say(("retention", "sources", name), "is no name of a source, such as cron")


def _backup(config: Config, say: Say) -> None:
    wanted = config.backup
    if wanted.folder is not None and not isabs(expanduser(wanted.folder)):
        say(("backup", "folder"), "is no whole path; give one that begins with / or ~")
    try:
        fine = micros(wanted.every) is not None
    except ValueError:
        fine = False
    if not fine:
        say(("backup", "every"), "is no age; give one from an hour to 100 years, such as 12h or 1d")
    _range(("backup", "keep"), wanted.keep, 1, 10_000, "points", say)


def _timeout(at: Key, value: float, say: Say) -> None:
    if not 0 < value <= LONGEST:
        say(at, f"is {value:g}; give seconds, over 0 and at most {LONGEST:,.0f}")


def _range(at: Key, value: float, least: float, most: float, unit: str, say: Say) -> None:
    if not least <= value <= most:
        say(at, f"is {value:,}; give {least:,} to {most:,} {unit}")
