"""An environment as a client holds it: its manifest and the contents that the scheduler may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..protocol.messages import LEVEL_MODULES, Contents, Payload
from ..protocol.messages import Environment as EnvironmentMessage
from .manifest import Manifest, digest_of

MESSAGE_BYTES = 4 << 20
"""Contents travel in messages of about this size, so that other messages come between."""


class Environment:
    """Modules, and perhaps packages, under the name of their manifest.

    Args:
        manifest: what it has.
        contents: the contents that the manifest names, by their digests.
        level: what it asks of a host, as in the protocol.
        platform: it works on hosts of this platform alone; empty: on all.
    """

    def __init__(
        self, manifest: Manifest, contents: Mapping[str, Payload], level: int = LEVEL_MODULES, platform: str = ""
    ) -> None:
        self.manifest = manifest
        self._manifest_bytes = manifest.to_bytes()
        self.name = digest_of(self._manifest_bytes)
        self._contents = contents
        self.level = level
        self.platform = platform

    def message(self) -> EnvironmentMessage:
        """Return the message that names it to the scheduler."""
        size = sum(len(content) for content in self._contents.values())
        return EnvironmentMessage(
            self.name, list(self._contents), size, self.level, self.platform, self._manifest_bytes
        )

    def take(self, wanted: dict[str, None]) -> Iterable[Payload]:
        """Yield those of the wanted contents that it has, and remove them from `wanted`."""
        for name in list(wanted):
            content = self._contents.get(name)
            if content is not None:
                del wanted[name]
                yield content


def contents_messages(environments: Iterable[Environment], names: Iterable[str]) -> list[Contents]:
    """Return the messages with these contents, as far as the environments have them."""
    wanted = dict.fromkeys(names)
    messages: list[Contents] = []
    payloads: list[Payload] = []
    size = 0
    for environment in environments:
        for content in environment.take(wanted):
            payloads.append(content)
            size += len(content)
            if size >= MESSAGE_BYTES:
                messages.append(Contents(payloads))
                payloads, size = [], 0
    if payloads:
        messages.append(Contents(payloads))
    return messages
