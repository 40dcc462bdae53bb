"""Settings: limits on every size an outsider chooses, where the store is, and the configuration
file.

What only some programs need (`load`, `Loaded`, `ConfigError`) is loaded when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.config.limits import Limits
from clew.config.place import config_path, default_profile, default_store, home

if TYPE_CHECKING:
    from clew.config.loading import Loaded, load
    from clew.config.problems import ConfigError

__all__ = [
    "ConfigError", "Limits", "Loaded", "config_path", "default_profile", "default_store", "home",
    "load",
]  # fmt: skip

_HOMES = {
    "ConfigError": "clew.config.problems",
    "Loaded": "clew.config.loading",
    "load": "clew.config.loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
