"""An error of the API, or of the SDK, as one of errors.py, with its remedy."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

import openai
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
from clew.providers.openai_overflow import is_overflow

_client = openai.DefaultAsyncHttpxClient.__mro__[1]
_http: Any = importlib.import_module(_client.__module__.partition(".")[0])
"""The client of HTTP that the SDK is built on: httpx, or what took its place."""
FAILURES: tuple[type[Exception], ...] = (openai.OpenAIError, _http.HTTPError)
"""What a request may raise: the SDK's own, and what reading the body of an error raises."""
MOST_TEXT = 240
"""Characters of a server's own words that an error repeats."""
_PIECE, _STEP = 12, 4
_BEGIN = 6
_MASKED = re.compile(r"\S*\*{2,}\S*")
"""A key as servers repeat it: its beginning, stars, its end."""
_WAIT = re.compile(
    r"(?:try again|retry) (?:in|after) ((?:[\d.]+ ?(?:ms|[hms]|seconds?|minutes?)\s*)+)"
)
_DELAY = re.compile(r"retryDelay\W+([\d.]+)s")
_UNIT = re.compile(r"([\d.]+) ?(ms|[hms])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NO_CREDIT = re.compile(
    r"insufficient.{0,3}(quota|balance|credits?|funds)|credit balance|out of credits"
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not[ _]found|not exist)|not a valid model|(invalid|unknown|no such) model"
)
_NO_KEY = re.compile(r"api[ _]key (not valid|invalid)|invalid[ _]api[ _]key|incorrect api key")


class Place(Struct, frozen=True, kw_only=True):
    """Where an error happened, for its remedy. `hide` are secrets: no error shows them."""

    provider: str
    url: str
    variable: str | None = None
    """The environment variable that may hold the key."""
    hide: tuple[str, ...] = ()
    timeout: float = 0.0

    @property
    def key(self) -> str:
        """What to do about the key."""
        if self.variable is not None:
            return f"set {self.variable}, or run `clew config key {self.provider}`"
        return (
            f"run `clew config key {self.provider}`, or name the variable that holds it as key_env "
            f"in [providers.{self.provider}] (`clew config edit`)"
        )


class Told(Struct, frozen=True, kw_only=True):
    """What a server said. `codes`: its fields `code` and `type`, in lower case."""

    text: str
    status: int | None = None
    codes: tuple[str, ...] = ()
    retry_after: float | None = None
    structured: bool = True
    """JSON; else a web page, or nothing."""


def error_of(error: Exception, place: Place, asked: Callable[[], str]) -> ProviderError:
    """The typed error of one of `FAILURES`. `asked`: the request's text, which no error repeats."""
    match error:
        case openai.APITimeoutError() | _http.TimeoutException():
            return TimedOut(
                f"{place.provider} sent nothing for {place.timeout:g} seconds. Try again, or raise "
                f"timeout in [providers.{place.provider}].",
                provider=place.provider,
            )
        case openai.APIConnectionError() | _http.HTTPError():
            return Unreachable(
                f"no connection to {place.provider} at {place.url}, or it was lost. Is the server "
                f"running? Its address is base_url in [providers.{place.provider}].",
                provider=place.provider,
            )
        case openai.APIError():
            return refusal_of(told_by(error), place, asked)
        case _:
            return NotConfigured(
                f"{place.provider} cannot be used: {type(error).__name__}. Check "
                f"[providers.{place.provider}] (`clew config check`).",
                provider=place.provider,
            )


def told_by(error: openai.APIError) -> Told:
    """What the server said, of an error of the SDK: a status, or an object in a stream."""
    if isinstance(error, openai.APIStatusError):
        told = told_in(error.body, error.status_code)
        after = _header_delay(error.response.headers)
        return told if after is None else Told(
            text=told.text, status=told.status, codes=told.codes, retry_after=after,
            structured=told.structured,
        )  # fmt: skip
    return told_in(error.body, None)


def told_in(body: object, status: int | None) -> Told:
    """The same of the body of an error: an object, a text, or anything."""
    if isinstance(body, list) and len(cast(list[object], body)) == 1:  # Gemini
        return told_in(cast(list[object], body)[0], status)
    if not isinstance(body, dict):
        text = body if isinstance(body, str) else ""
        page = text.lstrip().startswith("<") or not text
        return Told(text="" if page else text, status=status, structured=not page)
    fields = cast(dict[str, Any], body)
    if isinstance(fields.get("error"), dict):
        return told_in(fields["error"], status)
    text = next((v for k in ("message", "detail", "error") if (v := fields.get(k))), "")
    codes = tuple(str(fields[k]).lower() for k in ("code", "type") if fields.get(k))
    if status is None:
        status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), None)
    said = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    after = _text_delay(json.dumps(fields, ensure_ascii=False, default=str))
    return Told(text=said, status=status, codes=codes, retry_after=after)


def refusal_of(told: Told, place: Place, asked: Callable[[], str]) -> ProviderError:
    """The typed error of what a server said."""
    kind, remedy = _judged(told, place)
    words = _shown(told.text, place.hide, asked)
    status = "" if told.status is None else f" (HTTP {told.status})"
    said = f": {words}" if words else ""
    return kind(
        f"{place.provider} refused{status}{said} {remedy}" if said and words[-1] in ".!?"
        else f"{place.provider} refused{status}{said}. {remedy}",
        provider=place.provider, status=told.status, retry_after=told.retry_after,
    )  # fmt: skip


def _judged(told: Told, place: Place) -> tuple[type[ProviderError], str]:
    """The class of error, and what to do."""
    text, status = told.text.lower(), told.status
    said = (text, *told.codes)
    config = f"[providers.{place.provider}]"
    if status == 402 or any(map(_NO_CREDIT.search, said)):
        return OutOfCredit, f"Pay at {place.provider}, or choose another model with /model."
    if status not in (401, 403) and (status == 413 or is_overflow(text, *told.codes)):
        return Overflow, "The request is too large for the model: `clew compact` makes it smaller."
    if status == 401 or any(map(_NO_KEY.search, said)):
        return BadKey, f"Is the key right? To give another, {place.key}."
    if status == 403:
        return BadKey, (
            f"This key may not do that. Allow it at {place.provider}, choose another model, or for "
            f"another key, {place.key}."
        )
    if status == 429 or "rate_limit_exceeded" in told.codes:
        return RateLimited, "Wait, and try again."
    if status == 404 and not (told.structured and "model" in " ".join(said)):
        return NotConfigured, (
            f"There is no such API at {place.url}. Check base_url in {config}: most end in /v1."
        )
    if status == 404 or (status in (400, 422) and any(map(_NO_MODEL.search, said))):
        return NoModel, "Choose one that it has: /model in a chat lists them."
    if status == 408:
        return TimedOut, "Try again."
    if status is not None and 400 <= status < 500 and status != 409:
        return BadRequest, f"Check the settings of the model, and base_url in {config}."
    return ServerFailed, "Try again later."


def malformed(place: Place, what: str) -> ServerFailed:
    """The error of an answer that cannot be read."""
    return ServerFailed(
        f"the answer of {place.provider} {what}. Try again; if it stays so, check base_url in "
        f"[providers.{place.provider}] ({place.url}).",
        provider=place.provider,
    )


# ---------------------------------------------------------------------- words


def _shown(text: str, hide: tuple[str, ...], asked: Callable[[], str]) -> str:
    """The server's words, one line, without secrets and without what it repeats of the request."""
    line = " ".join(text.split())[:MOST_TEXT]
    for secret in hide:
        line = re.sub(rf"{re.escape(secret)}|\S*{re.escape(secret[:_BEGIN])}\S*", "[key]", line)
    line = _MASKED.sub("[key]", line)
    request = asked() if len(line) > _PIECE else ""
    keep = [True] * len(line)
    for at in range(0, len(line) - _PIECE + 1, _STEP):
        if line[at : at + _PIECE] in request:
            keep[at : at + _PIECE] = [False] * _PIECE
    shown = "".join(c if kept else "\0" for c, kept in zip(line, keep, strict=True))
    return "".join(c for c in re.sub("\0+", "…", shown) if c.isprintable())


# ---------------------------------------------------------------------- when to come again


def _header_delay(headers: Mapping[str, str]) -> float | None:
    """Seconds of Retry-After, in each of its forms. A date is compared with the server's own."""
    if (millis := _number(headers.get("retry-after-ms"))) is not None:
        return millis / 1000
    after = headers.get("retry-after")
    if (seconds := _number(after)) is not None or after is None:
        return seconds
    try:
        wait = parsedate_to_datetime(after) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError):  # no date, or one without a zone
        return None
    return max(0.0, wait.total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _text_delay(text: str) -> float | None:
    """Seconds as the words of an error have it: "try again in 1m2.5s", "retryDelay": "32s"."""
    if match := _DELAY.search(text):
        return _number(match[1])
    if match := _WAIT.search(text.lower()):
        parts = [(_number(n), unit) for n, unit in _UNIT.findall(match[1])]
        return sum((n or 0.0) * _SECONDS[unit] for n, unit in parts)
    return None
