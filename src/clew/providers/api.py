"""What a provider of models is: a request rendered, streamed, answered.

The host renders a request once (`render`, which may read images from the store and so is called in
a thread), keeps the hash of its beginning, and streams its answer (`stream`). No provider tries
again, falls back or compacts: the host decides that, by the class of the error (errors.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from clew.context.build import Context
from clew.domain.chat import BlobReader
from clew.domain.parts import Parts
from clew.domain.turns import Usage

if TYPE_CHECKING:
    from clew.store.profile import Profile
    from clew.store.reader import ConversationReader

Stop = Literal["stop", "length", "tool_calls", "refusal", "content_filter", "other"]
"""Why a model stopped. `stop`: it had said all; `length`: its room was full."""


class Price(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input that the provider's cache held; None: as `input`."""

    def cost(self, usage: Usage) -> float:
        """US dollars of a call."""
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / 1e6


class Model(Struct, frozen=True, kw_only=True):
    """What is known of a model. `window`: tokens, the reply included."""

    name: str
    """As the provider is asked for it."""
    provider: str
    """Name of the provider in the configuration."""
    window: int
    reply: int = 0
    """Most tokens of a reply; 0: as the budget has it."""
    price: Price | None = None
    tools: bool = True
    images: bool = True
    source: str = "default"
    """Who says so: "config", "server", "data" (shipped, with its date), "default"."""

    @property
    def shown(self) -> str:
        """As a person writes it: provider/name."""
        return f"{self.provider}/{self.name}"


class ToolSpec(Struct, frozen=True):
    """A tool as a model is told of it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Request(Struct, frozen=True, kw_only=True):
    """What a model is asked."""

    model: Model
    context: Context
    blob: BlobReader
    """Bytes of an image or file by hash."""
    tools: tuple[ToolSpec, ...] = ()
    """In their pinned order."""
    affinity: str | None = None
    """Scope of the provider's prompt cache: the conversation's."""
    attribution: str | None = None
    """The affinity of the conversation on whose behalf this one was made; None: its own."""
    max_tokens: int | None = None
    """Of the reply."""
    settings: Mapping[str, Any] = {}
    """The caller's own, of the model's configuration: temperature, reasoning_effort, ..."""
    reader: ConversationReader | None = None
    profile: Profile | None = None
    """Where the archivist looks; no other provider may read them."""


class Body(Struct, frozen=True):
    """A rendered request, exactly as it is sent.

    `messages` is the key in `payload` of the list that grows from request to request. All other
    entries, and the messages but the last, are what a provider's prompt cache can hold.
    """

    payload: dict[str, Any]
    messages: Literal["messages", "input"] = "messages"
    headers: dict[str, str] = {}
    request: Request | None = None
    """Set by the archivist only, which sends nothing."""


class TextDelta(Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of the model's thinking."""

    text: str


class CallDelta(Struct, frozen=True):
    """A piece of a tool call. `id` and `name` come with its first piece."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """A whole answer; what a stream ends with."""

    parts: Parts
    """Reasoning (its `model` set), Text, ToolCall, in the model's order. A refusal is Text."""
    stop: Stop
    usage: Usage = Usage()
    model: str | None = None
    """As the provider names what answered."""
    id: str | None = None
    """The provider's id of the response."""
    cost: float | None = None
    """US dollars, where the provider says."""


StreamEvent = TextDelta | ReasoningDelta | CallDelta | Reply


class Provider(Protocol):
    """One configured place where models answer."""

    name: str

    def render(self, request: Request) -> Body:
        """The request as it will be sent. Blocking: reads blobs. Equal requests give equal bytes.

        Raises ProviderError for what this provider cannot send at all."""
        ...

    def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        """Send, and give the pieces as they come, a Reply last. Closing the iterator (`aclose`) or
        cancelling its task ends the request at once. Raises ProviderError."""
        ...

    async def complete(self, body: Body) -> Reply:
        """Send without streaming."""
        ...

    async def count(self, body: Body) -> int | None:
        """Input tokens as the provider counts them, if it has a way to say without answering."""
        ...

    async def models(self) -> tuple[str, ...]:
        """Names of the models the server lists; empty when it does not say."""
        ...

    async def describe(self, model: str) -> Model | None:
        """What the server says of a model (window, what it takes); None when it does not."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
