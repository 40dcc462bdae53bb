"""What goes wrong with a model call, by what helps against it.

    ProviderError (ClewError)
    ├── TryAgain          helps: waiting (429, 5xx, time-out, cut stream, no connection)
    │   ├── RateLimited   429; `retry_after` seconds, when the server says
    │   ├── ServerFailed  5xx, overloaded, a malformed or cut answer
    │   ├── TimedOut      nothing came in time
    │   └── Unreachable   no connection
    ├── Overflow          helps: a smaller context (the host compacts and asks again)
    ├── BadKey            helps: another key, or permission (401, 403)
    ├── OutOfCredit       helps: paying (402, insufficient_quota)
    ├── NoModel           helps: another name (404)
    ├── BadRequest        the provider refuses the request as it is (400, 422)
    └── NotConfigured     helps: configuring (no key, an extra that is not installed)

The text of a ProviderError may be shown: it never holds a key or the conversation, and says what
to do.
"""

from __future__ import annotations

from typing import ClassVar

from clew.errors import ClewError


class ProviderError(ClewError):
    """A model call failed. `status`: of HTTP; `retry_after`: seconds, if the server says."""

    def __init__(
        self, message: str, *, provider: str, status: int | None = None,
        retry_after: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.provider, self.status, self.retry_after = provider, status, retry_after


class TryAgain(ProviderError):
    """Waiting helps."""

    retryable: ClassVar[bool] = True


class RateLimited(TryAgain):
    """Too many requests; `retry_after` seconds, when the server says."""


class ServerFailed(TryAgain):
    """The server failed, was overloaded, or its answer was cut or malformed."""


class TimedOut(TryAgain):
    """Nothing came in time."""


class Unreachable(TryAgain):
    """No connection to the server."""


class Overflow(ProviderError):
    """The request is too large for the model: compact, and ask again."""


class BadKey(ProviderError):
    """The key is missing, wrong, or not permitted."""


class OutOfCredit(ProviderError):
    """The account has no credit left."""


class NoModel(ProviderError):
    """The provider has no model of this name."""


class BadRequest(ProviderError):
    """The provider refuses the request as it is."""


class NotConfigured(ProviderError):
    """A provider cannot be used until something is configured or installed."""
