"""Fakes that ship with clew, for tests of code that uses it."""

from clew.testing.provider import Hold, ScriptedProvider, Signal

__all__ = ["Hold", "ScriptedProvider", "Signal"]
