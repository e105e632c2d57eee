"""The environments of clients: one that all have, and one of each client alone."""

from __future__ import annotations

from scaler_client.environments.environment import Environment
from scaler_client.environments.manifest import Manifest, ModuleFile, digest_of


class Environments:
    """The environments of one run."""

    def __init__(self) -> None:
        self._by_owner: dict[str, Environment] = {}
        self._by_name: dict[str, Environment] = {}

    def of_client(self, owner: str) -> Environment:
        """The environment of this client; empty: that of all clients. They share one of their contents."""
        environment = self._by_owner.get(owner)
        if environment is None:
            contents = [b"a content of all", b"a content of " + owner.encode()]
            names = [digest_of(content) for content in contents]
            files = [ModuleFile(f"module{place}.py", name) for place, name in enumerate(names)]
            environment = self._by_owner[owner] = Environment(Manifest(tuple(files)), dict(zip(names, contents)))
            self._by_name[environment.name] = environment
        return environment

    def named(self, name: str) -> Environment:
        """The environment with this name."""
        return self._by_name[name]
