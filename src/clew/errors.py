"""Every error that clew raises, as one tree.

    ClewError
    ├── InputError            the caller's value cannot be accepted; nothing was written
    │   ├── TooLarge          a size limit (attributes: what, size, limit)
    │   ├── ContextTooLarge   no context fits the budget (attributes: tokens, limit, seq)
    │   └── InvalidCursor     a page cursor that this query did not produce
    ├── NotFound              no such conversation, message, cut, ... in this profile
    │   └── Ambiguous         a prefix that names several (attribute: candidates)
    ├── Refused               the state does not allow it; nothing was written
    │   ├── KeyReused         the same key, uid or id for something else (attribute: what)
    │   ├── BatchConflict     a batch of which only some keys are there (attribute: found)
    │   ├── Stale             the caller's head or view is not the current one
    │   ├── Ended             the conversation has ended (attribute: reason, boundary)
    │   ├── ReadOnly          the conversation or handle takes no writes
    │   ├── TurnOpen          a turn is running and somebody holds its right
    │   ├── InboxFull         too many messages wait already (retryable)
    │   ├── RightLost         another holder has taken the right to run
    │   ├── Cancelled         the attempt was cancelled, failed or committed by nobody
    │   ├── Overtaken         the view moved while the summary was written
    │   ├── ImportOvertaken   somebody wrote since an import was planned (retryable)
    │   ├── CutOvertaken      messages follow the cut; open its line as a branch
    │   └── InvalidCompaction a body that breaks a rule of compactions
    └── StoreError            the store cannot serve
        ├── Busy              a bounded wait for the write turn ran out (retryable)
        ├── StoreUnusable     the disk refuses; nothing was written (attribute: reason)
        │   ├── StoreFull     no space left for the write
        │   └── NetworkFolder the store lies on a network file system
        ├── Corrupt           the store is damaged
        │   └── Quarantined   this handle met damage before, and stopped for good
        ├── Spooled           messages are in the spool instead (attribute: uids); stop this turn
        ├── SchemaTooNew      written by a newer clew
        ├── Unavailable       the server cannot be reached, or went away (retryable)
        ├── StoreReplaced     the store at this place is no longer the one opened
        │   ├── StoreMoved    it was moved to another place (attribute: where)
        │   └── WalLost       its -wal was deleted or replaced
        ├── StoreClosed       used after close, or inherited over a fork
        └── SearchUnavailable the search file cannot be used; the log is unharmed

`retryable` says whether repeating the same call, with the same keys, can succeed. Messages name
what is wrong, where, and what to do; the facts are attributes too, so that no caller parses text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class ClewError(Exception):
    """Base of all errors of clew."""

    retryable: ClassVar[bool] = False


class InputError(ClewError, ValueError):
    """The caller's value cannot be accepted; nothing was written."""


class TooLarge(InputError):
    """A value is over a configured limit."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.what, self.size, self.limit = what, size, limit
        super().__init__(
            f"{what} has a size of {size:,}, the limit is {limit:,}. "
            f"Raise the limit in clew.Limits, or pass less."
        )


class ContextTooLarge(InputError):
    """What a model should see does not fit its window, however it is shortened."""

    def __init__(
        self, tokens: int, limit: int, size: int, most: int, seq: int | None, alone: int,
        system: int,
    ) -> None:  # fmt: skip
        self.tokens, self.limit, self.size, self.most = tokens, limit, size, most
        self.seq = seq
        """The message that is too large alone; None when no single one is."""
        super().__init__(self._text(alone, system))

    def _text(self, alone: int, system: int) -> str:
        if self.tokens <= self.limit:
            return (
                f"the request takes {self.size:,} bytes, the budget is {self.most:,}. Send fewer "
                "or smaller images with the last message, or raise Budget.bytes."
            )
        if system > self.limit:
            return (
                f"system prompt and tools alone take {system:,} of {self.limit:,} tokens. Shorten "
                "them, offer fewer tools, or use a model with a larger window."
            )
        if self.seq is not None:
            return (
                f"message {self.seq} alone takes {alone:,} of {self.limit:,} tokens. Shorten it "
                "(edit or cut it and send less), pass it as a file that a tool reads in pieces, or "
                "use a model with a larger window."
            )
        return (
            f"the context takes {self.tokens:,} of {self.limit:,} tokens. Compact the conversation "
            "(clew.Compactor, or `clew compact`); where that frees nothing, what people wrote in "
            "the turn in flight is too much: end the turn, or use a model with a larger window."
        )


class InvalidCursor(InputError):
    """The cursor was not produced by this query."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        super().__init__(f"cursor {cursor!r} is not one this query gave; start without a cursor")


class NotFound(ClewError, LookupError):
    """Nothing by that name in this profile."""

    def __init__(self, what: str, name: str) -> None:
        self.what, self.name = what, name
        super().__init__(f"no {what} {name!r} in this profile")


class Ambiguous(NotFound):
    """A prefix or alias that names several conversations; nothing was done."""

    def __init__(self, name: str, candidates: Sequence[str], more: bool = False) -> None:
        self.candidates, self.more = tuple(candidates), more
        super().__init__("single conversation", name)
        listed = ", ".join(self.candidates) + (", …" if more else "")
        self.args = (f"{name!r} names several conversations: {listed}. Give more characters.",)


class Refused(ClewError):
    """The state of the conversation does not allow this; nothing was written."""


class KeyReused(Refused):
    """A name that is taken: a key or uid of a message with other content, or (`what` is
    "conversation") an id of another conversation."""

    def __init__(self, key: str, seq: int | None, what: str = "message") -> None:
        self.key, self.seq, self.what = key, seq, what
        if what != "message":
            super().__init__(
                f"id {key!r} already names another {what}. Use a new id for a new {what}, "
                f"or open the one that is there."
            )
            return
        where = "waiting in the inbox" if seq is None else f"at seq {seq}"
        super().__init__(
            f"key {key!r} already names another message ({where}). "
            f"A key belongs to one content: use a new key for a new message."
        )


class BatchConflict(Refused):
    """Some messages of a batch are there, but not as a prefix of it."""

    def __init__(self, found: Sequence[int]) -> None:
        self.found = tuple(found)
        super().__init__(
            f"part of this batch is already stored (seqs {list(self.found)}), and not as its "
            f"beginning. Read the log and send only what is missing."
        )


class Stale(Refused):
    """The caller's picture of the conversation is old."""

    def __init__(self, what: str, expected: int, actual: int) -> None:
        self.what, self.expected, self.actual = what, expected, actual
        super().__init__(
            f"expected {what} {expected}, but it is {actual}: the conversation changed. "
            f"Read it again and repeat with the new {what}."
        )


class Ended(Refused):
    """The conversation has ended and takes no messages."""

    def __init__(self, conversation: str, reason: str, boundary: bool) -> None:
        self.conversation, self.reason, self.boundary = conversation, reason, boundary
        super().__init__(
            f"conversation {conversation} ended ({reason}). Route the message again, "
            f"or let a person reopen it."
        )


class ReadOnly(Refused):
    """The conversation takes no writes."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(f"conversation {conversation} is read-only; branch it to go on")


class TurnOpen(Refused):
    """A turn is open and its right is held by somebody else."""

    def __init__(self, conversation: str, turn: int, holder: str | None) -> None:
        self.conversation, self.turn, self.holder = conversation, turn, holder
        held = f"held by {holder}" if holder else "waiting for a person"
        super().__init__(f"turn {turn} of {conversation} is open ({held})")


class InboxFull(Refused):
    """More messages wait than the limit allows; the sender may try again later."""

    retryable = True

    def __init__(self, conversation: str, limit: int) -> None:
        self.conversation, self.limit = conversation, limit
        super().__init__(
            f"{limit} messages wait in the inbox of {conversation} already; "
            f"let the running turn end, or raise Limits.inbox"
        )


class RightLost(Refused):
    """The right to run this conversation was taken by another holder."""

    def __init__(self, conversation: str, fence: int) -> None:
        self.conversation, self.fence = conversation, fence
        super().__init__(
            f"fence {fence} of {conversation} is no longer the current one: another holder "
            f"took over, or a cut ended the turn. Stop this turn; do not retry it."
        )


class Cancelled(Refused):
    """The attempt is not open any more; nothing was written."""

    def __init__(self, attempt: int, state: str) -> None:
        self.attempt, self.state = attempt, state
        super().__init__(f"attempt {attempt} is {state}; its result was not written")


class Overtaken(Refused):
    """What the summary stands for changed while it was written; no strike, no cooldown."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        super().__init__(f"attempt {attempt} was overtaken by a cut or another compaction")


class ImportOvertaken(Refused):
    """Somebody wrote to the conversation, or made it, since an import was planned; plan again."""

    retryable = True

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(f"{conversation} has changed since the import looked at it; import again")


class CutOvertaken(Refused):
    """A cut that can no longer be undone in place."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(
            f"messages follow cut {number}, or it is not the newest; "
            f"open its old line with branch(at_cut={number})"
        )


class InvalidCompaction(Refused):
    """A compaction that breaks a rule; the message says which."""


class StoreError(ClewError):
    """The store itself cannot serve."""


class Busy(StoreError):
    """A bounded wait ran out. The same call with the same keys may be repeated."""

    retryable = True


class StoreUnusable(StoreError):
    """The disk or file system under the store refuses: an I/O error, read-only, no locks, a stale
    handle. Waiting does not help; the message names the cause."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        self.reason = reason
        """The system's name of the error, as in EIO; None where it told none."""
        super().__init__(message)


class StoreFull(StoreUnusable):
    """No space for this write; nothing of it was stored."""


class NetworkFolder(StoreUnusable):
    """The store lies on a network file system, where its locks do not hold."""


class Corrupt(StoreError):
    """The file is damaged. `clew doctor` says what and what to do."""


class Quarantined(Corrupt):
    """This handle met damage in the log and writes nothing any more, so that the evidence stays."""


class Spooled(StoreError):
    """The store cannot take these messages, and they are durable in the spool instead; the next
    write to the conversation that goes through brings them in. A turn that gets this stops."""

    def __init__(self, conversation: str, uids: Sequence[str], cause: str) -> None:
        self.conversation, self.uids, self.cause = conversation, tuple(uids), cause
        super().__init__(
            f"{len(self.uids)} messages of {conversation} are in the spool, because the store "
            f"cannot take them: {cause}"
        )


class SchemaTooNew(StoreError):
    """The file was written by a newer clew than this one may write with."""


class Unavailable(StoreError):
    """The server of the store cannot be reached, or the connection to it was lost. Whether a write
    that was under way is stored nobody knows: the same call with the same keys finds out."""

    retryable = True


class StoreReplaced(StoreError):
    """The store at this place is no longer the one that was opened."""


class StoreMoved(StoreReplaced):
    """The store was moved: what is written here would be lost there."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"this store was moved to {where}; open that one")


class WalLost(StoreReplaced):
    """The -wal of the store was deleted or replaced while somebody had it open."""


class StoreClosed(StoreError):
    """The store was closed, or belongs to the parent of this forked process."""


class SearchUnavailable(StoreError):
    """The search file cannot be used. The log is unharmed; `clew doctor` tells the remedy."""
