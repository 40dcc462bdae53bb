"""Values of LangGraph's checkpoints, decoded without making anything that a file names.

Its serializer writes objects as MessagePack extensions that name a module, a class and what to call
it with. Here such a thing is its name and its arguments, and nothing more.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from clew.importers.decode import decode
from clew.importers.fields import listed, mapping, text

_ARRAY = 6
"""The extension for arrays of numbers: bytes that say nothing to a person."""


class Named(Struct, frozen=True):
    """An object that the file wants made: its class, and what with."""

    name: str
    value: Any


class Values:
    """Decodes the checkpoints of one thread. A checkpoint says again what the one before it said:
    objects are decoded once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], Named] = {}
        self._decoder = msgspec.msgpack.Decoder(ext_hook=self._object)

    def decode(self, kind: str, data: bytes) -> Any:
        """The value of a blob. ValueError says why there is none."""
        match kind:
            case "msgpack":
                return self._unpacked(data)
            case "json":
                return decode(data)
            case _:
                raise ValueError(f"of the type {kind!r}, which is not decoded")

    def _unpacked(self, data: bytes) -> Any:
        try:
            return self._decoder.decode(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError) as error:
            raise ValueError(f"no MessagePack: {error}") from None

    def _object(self, code: int, data: memoryview) -> Named:
        key = (code, bytes(data))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(code, key[1])
        return found

    def _made(self, code: int, data: bytes) -> Named:
        if code == _ARRAY:
            return Named("array", None)
        try:
            given = self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError):
            given = None  # one object that cannot be read; what stands beside it can
        if not isinstance(given, list):
            return Named("", None)
        fields = cast(list[Any], given)
        name = text(fields[1]) if len(fields) > 1 else None
        return Named(name or "", fields[2] if len(fields) > 2 else None)


def fields_of(value: object) -> dict[str, Any]:
    """The fields of an object: of one that was to be made, of LangChain's own JSON for one, or of a
    dictionary. Its class is under "class" where it is told."""
    if isinstance(value, Named):
        return {**_texted(value.value), "class": value.name}
    given = _texted(value)
    if given.get("type") == "constructor" and "kwargs" in given:
        names = listed(given.get("id"))
        return {**_texted(given["kwargs"]), "class": text(names[-1]) if names else ""}
    return given


def _texted(value: object) -> dict[str, Any]:
    """The entries whose keys are texts."""
    return {key: each for key, each in mapping(value).items() if type(key) is str}


def plain(value: Any) -> Any:
    """A value as JSON can hold it; objects as what they were to be made with. ValueError when it is
    too deep."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
    except (RecursionError, TypeError, OverflowError):
        raise ValueError("no JSON value") from None


def _plain(value: object) -> Any:
    return str(value)
