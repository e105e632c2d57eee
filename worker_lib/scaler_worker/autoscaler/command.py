"""The provider `command`: three commands of the operator start, stop and list hosts. It covers clouds.

Each command gets these variables: SCALER_POOL, SCALER_ADDRESS, SCALER_WORKERS (of a host), SCALER_CAPABILITIES,
SCALER_RESOURCES, SCALER_COMMAND (the command of a host agent, to which `--agent-name NAME` must be added), SCALER_NAMES
(separated by blanks) and SCALER_NUMBER (of these names). `stop` also gets SCALER_FORCE: 1 if a host must end at once.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from scaler_client.autoscale.pools import parse_host_name

from .providers import HostCommand, ProviderError, resources_argument, run_program


class CommandProvider:
    """Runs the operator's commands.

    Args:
        command: makes the command of a host.
        seconds: the longest run of a command.
    """

    def __init__(self, command: HostCommand, seconds: float) -> None:
        self._command = command
        self._seconds = seconds

    def start(self, names: Sequence[str]) -> dict[str, str]:
        self._run(self._command.settings.start, names)
        return {}

    def drain(self, names: Sequence[str]) -> None:
        self._run(self._command.settings.stop, names)

    def kill(self, names: Sequence[str]) -> None:
        self._run(self._command.settings.stop, names, SCALER_FORCE="1")

    def host_names(self) -> set[str]:
        """The first word of each line that the command prints; names of other pools are left out."""
        pool = self._command.pool.name
        words = [line.split()[0] for line in self._run(self._command.settings.list, ()).splitlines() if line.strip()]
        for word in words:
            if parse_host_name(word) is None:
                raise ProviderError(
                    f"list printed {word[:80]!r}, which is not the name of a host ({pool}-NUMBER-RANDOM)"
                )
        return {word for word in words if (parsed := parse_host_name(word)) is not None and parsed[0] == pool}

    def _run(self, command: str, names: Sequence[str], **further: str) -> str:
        pool = self._command.pool
        variables = {
            "SCALER_POOL": pool.name,
            "SCALER_ADDRESS": self._command.address,
            "SCALER_WORKERS": str(pool.workers),
            "SCALER_CAPABILITIES": ",".join(f"{name}={amount}" for name, amount in pool.capabilities.items()),
            "SCALER_RESOURCES": resources_argument(pool.resources),
            "SCALER_COMMAND": shlex.join([*self._command.settings.program, *self._command.options()]),
            "SCALER_NAMES": " ".join(names),
            "SCALER_NUMBER": str(len(names)),
            "SCALER_FORCE": "0",
            **further,
        }
        return run_program(command, seconds=self._seconds, variables=variables)
