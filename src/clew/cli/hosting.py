"""A host, made of the configuration: its models, its tools.

Loaded by name: what it imports takes longer than most commands do.
"""

from __future__ import annotations

from clew.config.secrets import secret
from clew.config.values import Config
from clew.host.host import Host
from clew.providers.registry import Providers
from clew.store.aio.profile import AsyncProfile
from clew.tools.toolbox import Toolbox


def make(profile: AsyncProfile, config: Config) -> Host:
    """A host of a profile. Nothing is connected yet: models and tool servers are at first use."""
    tools = Toolbox(config.tools, config.mcpServers)
    return Host(profile, Providers(config, secret), tools, config)
