"""The files of a simulated host in which its workers find objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import Payload


class HostFiles:
    def __init__(self) -> None:
        self.changes = 0
        """Grows with each file that is written or removed."""
        self.is_gone = False
        """Whether the agent has ended and removed the directory."""
        self._files: dict[ObjectName, Sequence[Payload] | str] = {}

    def __len__(self) -> int:
        return len(self._files)

    def find(self, name: ObjectName) -> Sequence[Payload] | str | None:
        """Return the object's frames, or why they will never exist. None: they do not exist yet."""
        return self._files.get(name)

    def names(self) -> list[ObjectName]:
        return list(self._files)

    def write(self, name: ObjectName, content: Sequence[Payload] | str) -> None:
        """Write a file. It replaces an older file, unless the content is only the reason for a missing file."""
        self.changes += 1
        if type(content) is not str or name not in self._files:
            self._files[name] = content

    def remove(self, names: Iterable[ObjectName]) -> None:
        self.changes += 1
        for name in names:
            self._files.pop(name, None)

    def remove_all(self) -> None:
        """Remove all files with the directory."""
        self._files.clear()
        self.is_gone = True
