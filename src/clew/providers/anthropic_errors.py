"""An error of Anthropic's API, or of its SDK, as one of errors.py, with its remedy."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
from msgspec import Struct

from clew.providers.errors import (
    BadKey,
    BadRequest,
    NoModel,
    NotConfigured,
    OutOfCredit,
    Overflow,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unreachable,
)

_client = anthropic.DefaultAsyncHttpxClient.__mro__[1]
_http: Any = importlib.import_module(_client.__module__.partition(".")[0])
"""The client of HTTP that the SDK is built on: httpx, or what took its place."""
FAILURES: tuple[type[Exception], ...] = (anthropic.AnthropicError, _http.HTTPError, ValueError)
"""What a request may raise: the SDK's own; what its client of HTTP raises while a stream is read;
what reading JSON or UTF-8 raises."""
_OVERFLOW = re.compile(
    r"prompt is too long|exceeds? (the )?(maximum )?context|input is too long|"
    r"input length and `?max_tokens`? exceed|context[ _]window|request_too_large"
)
_CREDIT = re.compile(r"credit balance|spend[ _]limit|insufficient|billing")
_LONGEST, _REPEATED = 240, 16
_KINDS: dict[str, int] = {
    "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 408, "overloaded_error": 529, "invalid_request_error": 400,
}  # fmt: skip
"""The status of each type. An error in a stream comes with status 200."""


class Place(Struct, frozen=True, kw_only=True):
    """Where an error happened, for its remedy. `hide`: what no error shows."""

    provider: str
    key_env: str = "ANTHROPIC_API_KEY"
    timeout: float = 0.0
    hide: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """Of the configuration."""
        return f"[providers.{self.provider}] (`clew config edit`)"


def error_of(error: Exception, place: Place, asked: Callable[[], str]) -> ProviderError:
    """The typed error. `asked`: the text of the request, which no error repeats."""
    name = place.provider
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error, place, asked)
    if isinstance(error, anthropic.APITimeoutError | _http.TimeoutException):
        return TimedOut(
            f"{name} sent nothing for {place.timeout:g} seconds. Try again, or raise timeout in "
            f"{place.section}.",
            provider=name,
        )
    if isinstance(error, _http.ReadError | _http.RemoteProtocolError):
        return cut(place)
    if isinstance(error, anthropic.APIConnectionError | _http.HTTPError):
        return Unreachable(
            f"no connection to {name}. Check the network, and base_url in {place.section}.",
            provider=name,
        )
    if isinstance(error, UnicodeEncodeError):
        return BadRequest(
            f"the request to {name} has text that is no Unicode; take lone surrogates out of the "
            "system prompt, the tools and the settings.",
            provider=name,
        )
    if isinstance(error, ValueError | anthropic.APIError):
        return ServerFailed(
            f"the answer of {name} is malformed. Try again; if it stays so, check base_url in "
            f"{place.section}.",
            provider=name,
        )
    return NotConfigured(
        f"{name} cannot be used: {type(error).__name__}. Check {place.section}.", provider=name
    )


def cut(place: Place) -> ServerFailed:
    """The error of an answer that stops in the middle."""
    return ServerFailed(
        f"the answer of {place.provider} was cut off. Try again.", provider=place.provider
    )


def too_long(place: Place) -> Overflow:
    """The error of an answer for which no room was left."""
    return Overflow(
        f"the request fills the window of the model at {place.provider}. `clew compact` makes it "
        "smaller.",
        provider=place.provider,
    )


def _of_status(
    error: anthropic.APIStatusError, place: Place, asked: Callable[[], str]
) -> ProviderError:
    text = str(error.api_message or "")
    kind = str(error.type or "")
    status = error.status_code if error.status_code >= 400 else _KINDS.get(kind, 500)
    code = str(error.error_code or "")
    made, remedy = _judged(status, f"{kind} {code} {text}".lower(), place)
    words = _shown(text, place.hide, asked)
    return made(
        f"{place.provider} refused (HTTP {status}){f': {words}' if words else ''}. {remedy}",
        provider=place.provider, status=status, retry_after=_delay(error.response.headers),
    )  # fmt: skip


def _judged(status: int, said: str, place: Place) -> tuple[type[ProviderError], str]:
    """The class of error, and what to do."""
    if status == 402 or (status in (400, 403, 429) and _CREDIT.search(said)):
        return OutOfCredit, (
            "Add credit or raise the limit at console.anthropic.com, or choose another model with "
            "/model."
        )
    if status == 413 or (status == 400 and _OVERFLOW.search(said)):
        return Overflow, "The request is too large for the model: `clew compact` makes it smaller."
    if status == 401:
        return BadKey, f"Is the key right? To give another: export {place.key_env}=..."
    if status == 403:
        return BadKey, (
            "This key may not do that. Allow it at console.anthropic.com, or choose another model "
            "with /model."
        )
    if status == 404 and "model" in said:
        return NoModel, "`/model` in a chat lists those it has, and chooses another."
    if status == 404:
        return NotConfigured, f"There is no such API there. Check base_url in {place.section}."
    if status == 429:
        return RateLimited, "Wait, and try again."
    if status == 408:
        return TimedOut, "Try again."
    if 400 <= status < 500 and status != 409:
        return BadRequest, f"Check the settings of the model, and {place.section}."
    return ServerFailed, "Try again later."


def _shown(text: str, hide: tuple[str, ...], asked: Callable[[], str]) -> str:
    """The server's words, one line, unless they repeat what was asked."""
    line = " ".join(text.split())[:_LONGEST].rstrip(" .")
    for secret in filter(None, hide):
        line = line.replace(secret, "[key]")
    request = asked() if len(line) >= _REPEATED else ""
    repeats = any(line[at : at + _REPEATED] in request for at in range(len(line) - _REPEATED + 1))
    return "" if repeats else "".join(sign for sign in line if sign.isprintable())


def _delay(headers: Mapping[str, str]) -> float | None:
    """Seconds of Retry-After; Anthropic gives a number."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None
