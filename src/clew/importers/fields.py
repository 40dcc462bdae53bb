"""Fields of a stranger's values: each may be missing, null, of another type or out of range.

Every function takes whatever stands there and gives the value in one type, or None (or an empty
one) when it is not that.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from clew.clock import LATEST
from clew.config import Limits
from clew.domain.parts import File, Image, Unknown
from clew.domain.values import check_json
from clew.errors import InputError
from clew.importers.decode import decode

BLOB = Limits().blob
"""Bytes of the largest image or file that is kept."""
ID = Limits().key
"""Characters of the longest id that is taken as one."""
META = 2000
"""Characters of the largest value that is kept beside a message."""
FACTS = 16 * 1024
"""Bytes of all that is kept beside one, as a store writes it: escaped."""
COUNT = 1 << 53
"""The largest count that a store adds up."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 1 << 62
_encoder = msgspec.json.Encoder()
_sorting = msgspec.json.Encoder(order="sorted")


def text(value: object) -> str | None:
    """A text, as it is."""
    return value if isinstance(value, str) else None


def ident(value: object) -> str | None:
    """An id: a text that is neither empty nor too long, or a whole number as text."""
    if isinstance(value, str):
        return value if 0 < len(value) <= ID else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return str(value)
    return None


def number(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return None
    return float(value) if math.isfinite(value) else None


def whole(value: object) -> int | None:
    """A count: a whole number that is not negative, and none that a store could not add up."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT:
        return value
    return None


def flag(value: object) -> bool:
    """Whether it is JSON's true."""
    return value is True


def mapping(value: object) -> dict[str, Any]:
    """An object; empty when it is none."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """A list; empty when it is none."""
    return cast(list[Any], value) if isinstance(value, list) else []


def json_of(value: object) -> Any:
    """What a text holds as JSON; None when it is no text or holds none."""
    if not isinstance(value, str):
        return None
    try:
        return decode(value)
    except ValueError:
        return None


def moment(value: object) -> int | None:
    """Microseconds since 1970, of an ISO 8601 text (UTC when it has no offset), or of a number (or
    a text of digits) of seconds, milliseconds, microseconds or nanoseconds since 1970; which of
    them it is, its size tells. None outside of 1970 to the last time that a store takes."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return _since_1970(_number_of(value))
        return _in_range(_micros(at))
    return _since_1970(number(value))


def _micros(at: datetime) -> int:
    try:
        past = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    except OverflowError:
        return -1
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds


def _number_of(digits: str) -> float | None:
    if not 9 <= len(digits) <= 30:
        return None
    try:
        return number(float(digits))
    except ValueError:
        return None


def _since_1970(given: float | None) -> int | None:
    """Of seconds up to the year 5138, which is where milliseconds begin with 1973."""
    if given is None:
        return None
    if abs(given) < 1e11:
        return _in_range(round(given * 1_000_000))
    if abs(given) < 1e14:
        return _in_range(round(given * 1000))
    return _in_range(round(given if abs(given) < 1e17 else given / 1000))


def _in_range(at: int) -> int | None:
    return at if 0 <= at <= LATEST else None


def lasted(milliseconds: object) -> int | None:
    """Microseconds of a number of milliseconds; None outside of one microsecond to eleven days,
    which no model call takes."""
    took = number(milliseconds)
    return round(took * 1000) if took is not None and 0 < took < 1e9 else None


def compact(value: object) -> str:
    """JSON without spaces, keys in their order. What UTF-8 cannot hold is escaped."""
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, TypeError, msgspec.MsgspecError):
        return json.dumps(value, separators=(",", ":"))


def canonical(value: object) -> bytes:
    """JSON bytes that are the same for the same value, however its keys were ordered."""
    try:
        return _sorting.encode(value)
    except (UnicodeEncodeError, OverflowError, TypeError, msgspec.MsgspecError):
        return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def arguments(value: object) -> str:
    """A tool call's arguments: the model's own text, or the JSON of what it became."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)


def unknown(value: object) -> Unknown:
    """A piece of content of no known kind. What a store would refuse in it (too deep, NaN, huge
    numbers) makes it the text of its JSON."""
    try:
        check_json("value", value)
    except InputError:
        return Unknown(compact(value))
    return Unknown(value)


def meta(**fields: object) -> dict[str, Any] | None:
    """Small facts for a record or chat: what is None, empty or false, too large (alone or with
    those before it) or no JSON value is left out; None when nothing is left."""
    return small(fields)


def small(fields: dict[str, Any]) -> dict[str, Any] | None:
    """As `meta`, of a dictionary."""
    kept: dict[str, Any] = {}
    left = FACTS
    for name, value in fields.items():
        if value and _is_small(value) and (size := _written(name) + _written(value)) <= left:
            kept[name] = value
            left -= size
    return kept or None


def _written(value: object) -> int:
    """Bytes of a value in a store's JSON, which is ASCII, and of what stands around it."""
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return len(value) + value.count('"') + value.count("\\") + 3
    return len(json.dumps(value)) + 1


def _is_small(value: object) -> bool:
    if isinstance(value, str | bool):
        return value is True or len(cast(str, value)) <= META
    try:
        check_json("value", value)
    except InputError:
        return False
    return len(compact(value)) <= META


def decoded(data: object, limit: int = BLOB) -> bytes | None:
    """The bytes of a base64 text, line ends allowed; None when it is none, or over the limit."""
    if not isinstance(data, str) or not data or len(data) > limit * 1.4 + 4:
        return None
    try:
        found = base64.b64decode("".join(data.split()) if "\n" in data else data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if len(found) <= limit else None


def image(data: object, media_type: object) -> Image | None:
    """An image of a base64 text; None when it is none, or too large."""
    found = decoded(data)
    return None if found is None else Image(media_type=media(media_type, "image/png"), data=found)


def media(value: object, default: str) -> str:
    """A media type, such as "image/png"."""
    ok = isinstance(value, str) and 0 < len(value) <= 200 and "/" in value
    return cast(str, value) if ok else default


def image_at(url: object, detail: object = None) -> Image | None:
    """An image of a URL: of a data URL its bytes, if they are valid; else the URL as it is."""
    if not isinstance(url, str) or not url:
        return None
    about = text(detail)
    if (found := _data_url(url)) is not None:
        return Image(media_type=media(found[0], "image/png"), data=found[1], detail=about)
    return Image(url=url, detail=about)


def file_at(url: object, name: object = None) -> File | None:
    """As `image_at`, a file."""
    if not isinstance(url, str) or not url:
        return None
    kind = "application/octet-stream"
    if (found := _data_url(url)) is not None:
        return File(media_type=media(found[0], kind), name=text(name), data=found[1])
    return File(url=url, name=text(name))


def file_named(kind: str, name: object, url: object, id: object) -> File | None:
    """A file that is elsewhere, by its address or its id there; None when neither is told: nothing
    could be sent for such a file."""
    where, known = text(url) or None, ident(id)
    if where is None and known is None:
        return None
    return File(media_type=kind, name=text(name), url=where, file_id=known)


def _data_url(url: str) -> tuple[str, bytes] | None:
    """Media type and bytes."""
    if not url.startswith("data:"):
        return None
    head, _, body = url.partition(",")
    if not head.endswith(";base64"):
        return None
    found = decoded(body)
    return None if found is None else (head[5:].partition(";")[0], found)
