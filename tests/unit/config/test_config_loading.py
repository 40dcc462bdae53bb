"""The configuration file, mcp.json and the environment; all that is wrong with them.

Parts of S26.1: one file, validated, with messages that name the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.config import Loaded, load
from clew.config.problems import ConfigError, Origin
from clew.config.template import TEMPLATE
from clew.config.values import ChatConfig, Config, McpConfig, PriceConfig, ProviderConfig
from clew.context.budget import FREED, SMALLEST_WINDOW, Budget
from clew.errors import InputError

Load = Callable[..., Loaded]
KEY = "sk-proj-abcdefghijklmnop1234567890"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def read(folder: Path) -> Load:
    """Load a text, with these variables."""

    def read(text: str = "", mcp: Any = None, **environ: str) -> Loaded:
        (folder / "config.toml").write_text(text, "utf-8")
        if mcp is not None:
            (folder / "mcp.json").write_text(mcp if isinstance(mcp, str) else json.dumps(mcp))
        return load(folder / "config.toml", environ)

    return read


@pytest.fixture
def wrong(read: Load) -> Callable[..., list[str]]:
    """The problems of a text, each as LINE: KEY: TEXT."""

    def wrong(text: str = "", mcp: Any = None, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(text, mcp, **environ)
        assert isinstance(caught.value, InputError)
        return [
            f"{each.origin.line or each.origin.name}: {each.key}: {each.text}"
            for each in caught.value.problems
        ]

    return wrong


def test_no_file_is_an_empty_one(folder: Path) -> None:
    loaded = load(environ={"CLEW_HOME": str(folder)})
    assert (loaded.config, loaded.path) == (Config(), folder / "config.toml")
    assert (loaded.exists, loaded.mcp, loaded.origins, loaded.notes) == (False, None, {}, ())


def test_the_file_is_what_the_environment_names(folder: Path) -> None:
    (folder / "mine.toml").write_text('model = "openai/m"')
    loaded = load(environ={"CLEW_CONFIG": str(folder / "mine.toml"), "CLEW_HOME": "/nowhere"})
    assert (loaded.config.model, loaded.exists) == ("openai/m", True)


def test_a_whole_file(read: Load, folder: Path) -> None:
    config = read("""
model = "local/qwen"
fallback = ["anthropic/claude-sonnet-5"]
store = "talks.db"
[providers.local]
base_url = "http://127.0.0.1:8080/v1"
timeout = 30
headers = { Authorization = "Bearer ${LOCAL_KEY}" }
[models."local/qwen"]
window = 32_768
price = { input = 0, output = 0.5 }
settings = { temperature = 0, prompt_cache_key = "abcdefgh-long", stop = ["a", {b = 1.5}] }
[mcpServers.files]
command = "npx"
args = ["-y", "files"]
[chat]
vi = true
""").config
    assert config.providers == {
        "local": ProviderConfig(
            base_url="http://127.0.0.1:8080/v1", timeout=30.0,
            headers={"Authorization": "Bearer ${LOCAL_KEY}"},
        )
    }  # fmt: skip
    model = config.models["local/qwen"]
    assert (model.window, model.price) == (32768, PriceConfig(input=0.0, output=0.5))
    assert model.settings["stop"] == ["a", {"b": 1.5}]
    assert config.mcpServers == {"files": McpConfig(command="npx", args=["-y", "files"])}
    assert (config.chat, config.store) == (ChatConfig(vi=True), str(folder / "talks.db"))


def test_the_environment_is_over_the_file(read: Load, folder: Path) -> None:
    loaded = read(
        'model = "openai/a"\n[limits]\nsteps = 5\nretries = 1\n', CLEW_MODEL="openai/b",
        CLEW_LIMITS_STEPS="50", CLEW_CHAT_VI="yes", CLEW_FALLBACK="groq/x, openai/y",
        CLEW_COMPACTION_HIGH="0.9", CLEW_CHAT_BUSY="queue", CLEW_SYSTEM="Be brief.",
        CLEW_STORE="x.db", CLEW_PROFILE="bot", CLEW_LIMITS_REPEATS="",
    )  # fmt: skip
    config = loaded.config
    assert (config.model, config.fallback, config.system) == (
        "openai/b", ["groq/x", "openai/y"], "Be brief.",
    )  # fmt: skip
    assert (config.store, config.profile) == ("x.db", "bot")
    assert (config.limits.steps, config.limits.retries, config.limits.repeats) == (50, 1, 3)
    assert (config.chat.vi, config.chat.busy, config.compaction.high) == (True, "queue", 0.9)
    file = str(folder / "config.toml")
    assert loaded.origin("limits", "steps") == Origin("CLEW_LIMITS_STEPS", is_variable=True)
    assert loaded.origin("limits", "retries") == Origin(file, 4)
    assert loaded.origin("limits", "repeats") is None


def test_variables_are_checked_as_well(wrong: Callable[..., list[str]]) -> None:
    assert wrong(
        CLEW_CHAT_VI="maybe", CLEW_LIMITS_STEPS="many", CLEW_TOOLS_TIMEOUT="inf",
        CLEW_CHAT_BUSY="stear", CLEW_MODEL="nowhere/m",
    ) == [
        "CLEW_CHAT_BUSY: chat.busy: cannot be read; give one of steer, queue",
        "CLEW_CHAT_VI: chat.vi: cannot be read; give true or false",
        "CLEW_LIMITS_STEPS: limits.steps: cannot be read; give a whole number",
        AnyText("CLEW_MODEL: model: there is no provider 'nowhere'; known are "),
        "CLEW_TOOLS_TIMEOUT: tools.timeout: is no finite number; give one that is",
    ]  # fmt: skip


class AnyText(str):
    """Equal to what begins like it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.startswith(str(self))

    __hash__ = str.__hash__


def test_a_misspelt_variable_is_noted(read: Load) -> None:
    (note,) = read(CLEW_LIMITS_STEP="4", CLEW_DEBUG="1", CLEW_PAGER="less").notes
    assert note.shown == (
        "CLEW_LIMITS_STEP: there is no such variable; did you mean CLEW_LIMITS_STEPS?"
    )


def test_settings_of_a_model_name_nothing_that_the_conversation_makes(
    wrong: Callable[..., list[str]],
) -> None:
    assert wrong('[models."openai/x"]\nsettings = { top_p = 0.5, model = "y", tools = [] }\n') == [
        '2: models."openai/x".settings.model: is made of the conversation; take it out',
        '2: models."openai/x".settings.tools: is made of the conversation; take it out',
    ]


def test_what_is_no_toml_says_what_to_look_for(wrong: Callable[..., list[str]]) -> None:
    (text,) = wrong('model = "openai/x\n[chat]\n')
    assert text.startswith("1")
    assert "not closed" in text


def test_all_problems_are_told_at_once_in_the_order_of_the_file(
    wrong: Callable[..., list[str]],
) -> None:
    assert wrong("""\
model = "opnai/gpt"
fallback = ["x", "anthropic/"]
stor = "a"
[limits]
steps = "5"
turn_cost = nan
retry = 3
retries = 101
[limits.foo]
[providers.openai]
kind = "opena"
timeout = 0
headers = { "x y" = "a", b = "c\\nd" }
[providers.b]
base_url = "ftp://x"
key_env = "not a name"
[models."openai/gpt-5"]
window = 10
price = { input = 1 }
settings = { at = 2026-01-01 }
[mcpServers.a]
args = []
[mcpServers.b]
command = "x"
url = "http://localhost:1/mcp"
[compaction]
high = 0.5
low = 0.5
[tools]
output = true
policy = { fetch = "allov" }
[chat]
vi = "yes"
""") == [
        "1: model: there is no provider 'opnai'; did you mean openai?; [providers.NAME] makes "
        "another",
        "2: fallback[0]: names no provider; write PROVIDER/NAME, such as openai/gpt-5",
        "2: fallback[1]: names no model; write PROVIDER/NAME, such as openai/gpt-5",
        "3: stor: there is no such key; did you mean store?",
        "5: limits.steps: is text; give a whole number",
        "6: limits.turn_cost: is no finite number; give one that is",
        "7: limits.retry: there is no such key; did you mean retries?",
        "8: limits.retries: is 101; give 0 to 100 tries",
        AnyText("9: limits.foo: there is no such key; known are day_cost, day_tokens, "),
        "11: providers.openai.kind: is none of what is allowed: openai, openai-responses, "
        "anthropic, archivist; did you mean openai?",
        "12: providers.openai.timeout: is 0; give seconds, over 0 and at most 86,400",
        '13: providers.openai.headers."x y": is no name of an HTTP header',
        "13: providers.openai.headers.b: has a line break or control character, which no header "
        "may",
        "15: providers.b.base_url: is no URL; give http://HOST:PORT/PATH or https://...",
        AnyText("16: providers.b.key_env: is no name of an environment variable; "),
        AnyText('18: models."openai/gpt-5".window: is 10; give 1,000 to '),
        '19: models."openai/gpt-5".price.output: is missing; give a number',
        '20: models."openai/gpt-5".settings.at: is a date or time; give what JSON can say',
        AnyText("21: mcpServers.a: has neither of command and url; "),
        AnyText("23: mcpServers.b: has both of command and url; "),
        AnyText("28: compaction.low: is 0.5 and high is 0.5: "),
        "30: tools.output: is true or false; give a whole number",
        "31: tools.policy.fetch: is none of what is allowed: allow, ask, deny; did you mean allow?",
        "33: chat.vi: is text; give true or false",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\nb = yes\n", "2:5: Invalid value; a text needs quotes"),
        ("model = \n", "1:9: Invalid value"),
        ('a = 1\na = "' + KEY + '"\n', "the key is there twice"),
        ('model = "' + KEY, "1:"),
        (f"{KEY} = 1\n[x]\n[x]\n", "3:"),
        ("x = {a = 1, a = 2}", "1:"),
        ("a = " + "[" * 9000, "nested too deeply"),
    ],
)
def test_what_is_no_toml_has_line_and_column(
    text: str, told: str, wrong: Callable[..., list[str]], read: Load
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert told in str(caught.value)
    assert KEY not in str(caught.value)


def test_files_that_cannot_be_read(folder: Path, wrong: Callable[..., list[str]]) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(folder, {})
    (folder / "config.toml").write_bytes(b"# fine\nmodel = '\xff'\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2: is not UTF-8"):
        load(folder / "config.toml", {})
    (folder / "config.toml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigError, match="larger than"):
        load(folder / "config.toml", {})


def test_windows_files_are_read(folder: Path) -> None:
    (folder / "config.toml").write_bytes(b"\xef\xbb\xbfmodel = 'openai/m'\r\n[limits]\r\nsteps=1")
    loaded = load(folder / "config.toml", {})
    assert loaded.config.limits.steps == 1
    origin = loaded.origin("limits", "steps")
    assert origin is not None
    assert origin.line == 3


LITERAL = "hunter2hunter2"
REFUSED = [
    f'api_key = "{LITERAL}"', f'[providers.openai]\napi_key = "{KEY}"',
    f'[providers.openai]\nkey_env = "{KEY}"', f'model = "{KEY}"', f'[chat]\nbusy = "{KEY}"',
    f'[providers.x]\nheaders = {{ Authorization = "Bearer {LITERAL}" }}',
    f'[providers.x]\nheaders = {{ x-api-key = "{LITERAL}" }}',
    f'[mcpServers.x]\ncommand = "a"\nenv = {{ GITHUB_TOKEN = "{LITERAL}" }}',
    f'[mcpServers.x]\ncommand = "a"\nargs = ["--key", "{KEY}"]',
    f'[providers."{KEY}"]\nkind = "openai"', f'"{KEY}" = 1', f'fallback = ["openai/a", "{KEY}"]',
    f'[models."openai/x"]\nsettings = {{ deep = [{{ a = "{KEY}" }}] }}',
    f'store = "postgresql://me:{LITERAL}@db/clew"',
    f'[providers.x]\nbase_url = "https://me:{LITERAL}@host/v1"',
    f'[mcpServers.x]\nurl = "https://h/mcp?api_key={LITERAL}"',
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_a_key_in_the_file_is_refused_and_never_shown(text: str, read: Load) -> None:
    """Not in the error either, nor in what it was raised from."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    error: BaseException | None = caught.value
    told = " ".join(each.shown for each in caught.value.problems)
    assert re.search("environment|PGPASSWORD|keyring", told)
    while error is not None:
        assert KEY not in str(error) + repr(error)
        assert LITERAL not in str(error) + repr(error)
        error = error.__cause__ or error.__context__


@given(
    st.sampled_from(["model", "fallback", "store", "limits", "providers", "chat", "tools", "x"]),
    st.sampled_from(
        ["{k}", "[{k}]", "{{a = {k}}}", "{{a = {{kind = {k}}}}}", "[[{k}]]", "{{{k} = 1}}",
         "{{timeout = {k}}}", "{{busy = {k}, titles = {k}}}", "{{policy = {{a = {k}}}}}"]
    ),
)  # fmt: skip
def test_a_key_anywhere_is_never_shown(
    tmp_path_factory: pytest.TempPathFactory, name: str, form: str
) -> None:
    path = tmp_path_factory.mktemp("c") / "config.toml"
    path.write_text(f"{name} = " + form.format(k=f'"{KEY}"'))
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert KEY not in str(caught.value)
    assert all(KEY not in each.shown for each in caught.value.problems)


FINE = [
    '[providers.x]\nkey_env = "MY_SECRET_API_KEY"\nkeyring = true',
    '[providers.x]\nheaders = { Authorization = "Bearer ${TOKEN}", x-key = "${A}" }',
    '[tools.policy]\n"get_api_key" = "allow"',
    '[mcpServers.key-server]\ncommand = "a"\nenv = { KEY = "${X}", USE_TOKEN = "false" }',
    'system = "Never print what begins with sk- or a token."',
    'store = "postgresql://me@db/clew"',
    'system = "A basic understanding of bearer authentication is needed."',
    '[mcpServers.x]\nurl = "https://h/mcp?key=${KEY}&sort=12345678"',
    '[models."openai/x"]\nsettings = { prompt_cache_key = "conversation-1234" }',
]  # fmt: skip


@pytest.mark.parametrize("text", FINE)
def test_what_only_speaks_of_keys_is_taken(text: str, read: Load) -> None:
    assert read(text).notes == ()


def test_servers_of_other_clients_are_read(read: Load, folder: Path) -> None:
    """Their file is theirs too: what they need and we do not is left out, and said."""
    loaded = read(
        '[mcpServers.both]\ncommand = "ours"\n',
        {"mcpServers": {
            "both": {"command": "theirs"},
            "off": {"type": "stdio", "command": "a", "disabled": True, "alwaysAllow": ["x"]},
            "web": {"transport": "http", "serverUrl": "https://h/mcp", "headers": None},
            "git": {"command": "g", "env": {"GITHUB_TOKEN": LITERAL, "A": "${env:B}"}},
        }},
    )  # fmt: skip
    assert loaded.config.mcpServers == {
        "both": McpConfig(command="ours"),
        "off": McpConfig(command="a", enabled=False),
        "web": McpConfig(url="https://h/mcp"),
        "git": McpConfig(command="g", env={"GITHUB_TOKEN": LITERAL, "A": "${B}"}),
    }
    assert loaded.mcp == folder / "mcp.json"
    assert loaded.origin("mcpServers", "off", "enabled") == Origin(str(folder / "mcp.json"), 1)
    told = [note.shown for note in loaded.notes]
    assert len(told) == 2
    assert "alwaysAllow: means nothing to clew" in told[0]
    assert "git.env.GITHUB_TOKEN: a key does not belong" in told[1]
    assert LITERAL not in " ".join(told)


def test_the_table_in_toml_takes_their_words_too(read: Load) -> None:
    config = read('[mcpServers.a]\ntype = "stdio"\ncommand = "x"\ndisabled = true\n').config
    assert config.mcpServers == {"a": McpConfig(command="x", enabled=False)}


def test_problems_of_mcp_json_name_its_lines(wrong: Callable[..., list[str]]) -> None:
    mcp = '{"mcpServers": {\n "a": {"command": 5},\n "b": 1,\n "c": {"url": "x"}}}'
    assert wrong("", mcp) == [
        "2: mcpServers.a.command: is a whole number; give text",
        "3: mcpServers.b: is a whole number; give a table",
        "4: mcpServers.c.url: is no URL; give http://HOST:PORT/PATH or https://...",
    ]
    assert wrong("x = 1", "{\n,}") == [
        AnyText("1: x: there is no such key"),
        AnyText("2: : this is no JSON: "),
    ]


def test_the_error_tells_some_and_counts_the_rest(read: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        read("\n".join(f"{name} = 1" for name in "abcdefg"))
    assert len(caught.value.problems) == 7
    assert str(caught.value).endswith("; and 4 more: `clew config check` lists them all")


def test_the_rules_are_those_of_the_budget(read: Load) -> None:
    """They stand in two layers, of which the lower cannot ask the upper."""
    for high, low in ((0.8, 0.8 * (1 - FREED)), (1.0, 0.1)):
        compaction = read(f"[compaction]\nhigh = {high}\nlow = {low}").config.compaction
        Budget(window=SMALLEST_WINDOW, high=compaction.high, low=compaction.low)
    for high, low in ((0.8, 0.61), (1.5, 0.3), (0.0, 0.0)):
        with pytest.raises(ConfigError):
            read(f"[compaction]\nhigh = {high}\nlow = {low}")
        with pytest.raises(InputError):
            Budget(window=SMALLEST_WINDOW, high=high, low=low)
    assert read(f'[models."openai/x"]\nwindow = {SMALLEST_WINDOW}').config.models
    with pytest.raises(ConfigError):
        read(f'[models."openai/x"]\nwindow = {SMALLEST_WINDOW - 1}')


def test_the_template_changes_nothing_and_all_of_it_can_be_used(read: Load) -> None:
    assert read(TEMPLATE).config == Config()
    body = "\n".join(
        line.removeprefix("# ")
        for line in TEMPLATE.splitlines()
        if re.match(r"# (\[|\w+ = )", line)
    )
    loaded = read(body)
    assert loaded.notes == ()
    assert loaded.config.limits == Config().limits
    assert {"local", "work"} == loaded.config.providers.keys()


@pytest.mark.parametrize("name", ["archivist", "archivist/any", "ollama/qwen3:8b"])
def test_models_that_need_no_section(name: str, read: Load) -> None:
    assert read(f'model = "{name}"').config.model == name
