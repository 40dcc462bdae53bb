"""Fakes that ship with clew, for tests of code that uses it."""
