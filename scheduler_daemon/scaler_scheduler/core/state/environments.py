"""Environments: the modules and packages that workers import for the tasks of a client, named by their content.

An environment is named by the SHA-256 of its manifest. The manifest names contents by their SHA-256. The scheduler
keeps each content once, and forwards it to host agents. It reads no manifest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import Environment as Declared
from scaler_scheduler.core.events import Kinds

_SEPARATOR = "\0"

CLIENT_ENVIRONMENTS = 16
"""A client holds so many environments: those that it named last. Tasks hold theirs in any case."""

MAX_ENVIRONMENTS = 1000


def kind_in(environment: str, kind: str) -> str:
    """Return the kind of a function that only workers of this environment can run.

    Such a kind is another kind: lanes and lists of workers need no rule for environments.
    """
    return f"{kind}{_SEPARATOR}{environment}" if environment else kind


def split_kind(kind: str) -> tuple[str, str]:
    """Return the plain kind and the environment of a kind. The environment is empty if there is none."""
    plain, _, environment = kind.partition(_SEPARATOR)
    return plain, environment


def kinds_in(environment: str, kinds: Kinds) -> Kinds:
    """Return the kinds of functions that a worker of this environment can run."""
    return frozenset(kind_in(environment, kind) for kind in kinds) if environment else kinds


class Environment:
    """One environment."""

    __slots__ = ("clients", "contents", "functions", "is_declared", "level", "manifest", "missing", "name", "platform")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_declared = False
        """Whether a client has sent it. Until then only functions name it, for example after a restart."""
        self.contents: tuple[str, ...] = ()
        self.level = 0
        self.platform = ""
        self.manifest = b""
        self.missing: set[str] = set()
        """The contents that the scheduler does not have yet."""
        self.clients: dict[int, None] = {}
        """The clients that hold it, by incarnation."""
        self.functions = 0
        """The functions that name it."""

    @property
    def is_complete(self) -> bool:
        """Whether the scheduler has all that a host needs."""
        return self.is_declared and not self.missing

    @property
    def is_used(self) -> bool:
        return bool(self.clients) or self.functions > 0


class EnvironmentTable:
    """The environments by name, and their contents. Unused ones stay until their room is needed."""

    def __init__(self, limit_bytes: int = 1 << 30) -> None:
        self._by_name: dict[str, Environment] = {}
        self._contents: dict[str, bytes] = {}
        self._users: dict[str, int] = {}
        """How many environments name a content."""
        self._of_clients: dict[int, dict[str, None]] = {}
        self._unused: OrderedDict[str, Environment] = OrderedDict()
        """The environments that are not used, the oldest first."""
        self.limit_bytes = limit_bytes
        self.bytes = 0
        """The size of all contents and manifests."""

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Environment]:
        return iter(list(self._by_name.values()))

    def find(self, name: str) -> Environment | None:
        return self._by_name.get(name)

    def content(self, name: str) -> bytes | None:
        """Return a content; None: it is not here."""
        return self._contents.get(name)

    def declare(self, client: int, declared: Declared) -> list[str]:
        """Add an environment that a client names.

        Args:
            client: the incarnation of the client.
            declared: the environment.

        Returns:
            The contents that the scheduler does not have.

        Raises:
            ProtocolError: there is no room for it.
        """
        size = declared.size + len(declared.manifest)
        environment = self._by_name.get(declared.name)
        if environment is None or not environment.is_declared:
            if size > self.limit_bytes:
                raise ProtocolError(
                    f"an environment of {size:,} bytes exceeds the scheduler's limit of {self.limit_bytes:,} bytes "
                    f"(--environment-limit)"
                )
            environment = self._add(declared.name)
            environment.is_declared = True
            environment.contents = tuple(declared.contents)
            environment.level, environment.platform = declared.level, declared.platform
            environment.manifest = declared.manifest
            environment.missing = {name for name in declared.contents if name not in self._contents}
            for name in environment.contents:
                self._users[name] = self._users.get(name, 0) + 1
            self.bytes += len(declared.manifest)
        environment.clients[client] = None
        self._unused.pop(declared.name, None)
        held = self._of_clients.setdefault(client, {})
        held.pop(declared.name, None)
        held[declared.name] = None
        if len(held) > CLIENT_ENVIRONMENTS:
            self._release(next(iter(held)), client)
        return sorted(environment.missing)

    def add_content(self, name: str, content: bytes) -> bool:
        """Keep a content. Returns False if no environment lacks it.

        Raises:
            ProtocolError: there is no room for it.
        """
        if name not in self._users or name in self._contents:
            return False
        self._make_room(len(content))
        if self.bytes + len(content) > self.limit_bytes:
            raise ProtocolError(
                f"the environments of all clients have more than {self.limit_bytes:,} bytes, the most that this "
                f"scheduler keeps (--environment-limit)"
            )
        self._contents[name] = content
        self.bytes += len(content)
        for environment in self._by_name.values():
            environment.missing.discard(name)
        return True

    def add_function(self, name: str) -> None:
        """Note that one more function names this environment, which may be unknown.

        Raises:
            ProtocolError: there are too many environments.
        """
        self._add(name).functions += 1
        self._unused.pop(name, None)

    def remove_functions(self, names: Iterable[str]) -> None:
        """Note that functions with these environments are dropped."""
        for name in names:
            environment = self._by_name[name]
            environment.functions -= 1
            self._note_unused(environment)

    def remove_client(self, client: int) -> None:
        """Release the environments of a client that has left."""
        for name in list(self._of_clients.get(client, ())):
            self._release(name, client)

    def _release(self, name: str, client: int) -> None:
        held = self._of_clients[client]
        del held[name]
        if not held:
            del self._of_clients[client]
        environment = self._by_name[name]
        environment.clients.pop(client, None)
        self._note_unused(environment)

    def _note_unused(self, environment: Environment) -> None:
        if environment.is_used:
            return
        self._unused[environment.name] = environment
        if not environment.is_complete:
            self._drop(environment)

    def _add(self, name: str) -> Environment:
        environment = self._by_name.get(name)
        if environment is None:
            if len(self._by_name) >= MAX_ENVIRONMENTS and not self._drop_oldest():
                raise ProtocolError(f"there are {MAX_ENVIRONMENTS} environments in use already")
            environment = self._by_name[name] = Environment(name)
        return environment

    def _make_room(self, size: int) -> None:
        while self.bytes + size > self.limit_bytes and self._drop_oldest():
            pass

    def _drop_oldest(self) -> bool:
        """Drop the environment that has been unused for the longest time. Returns False if all are used."""
        for environment in self._unused.values():
            self._drop(environment)
            return True
        return False

    def _drop(self, environment: Environment) -> None:
        del self._by_name[environment.name], self._unused[environment.name]
        self.bytes -= len(environment.manifest)
        for name in environment.contents:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self.bytes -= len(self._contents.pop(name, b""))
